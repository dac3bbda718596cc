"""What the ranks of a job say of themselves, one function of (rank, num_ranks) for each."""

import torch
from gloo_behaviour import Loop


def only_the_first_rank_logs(rank: int, num_ranks: int) -> str:
    """What each rank prints as its noise scale."""
    loop = Loop()
    for seed in range(3):
        loop.backward(2 * seed, synchronises=False)
        loop.backward(2 * seed + 1)
        if rank == 0:
            loop.run.log_gradients()
        loop.optimizer.step()
        loop.optimizer.zero_grad()
    said = str(loop.run.noise_scale())
    loop.run.finish()
    return said


def an_unknown_scaler_unscales(rank: int, num_ranks: int) -> list[int]:
    """Flags of steps whose gradients were divided by a small scale before the log."""
    loop = Loop()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for seed in range(3):
        loop.backward(2 * seed, scale=1.0, synchronises=False)
        scaler.scale(torch.zeros(()))  # makes the scale
        loop.backward(2 * seed + 1, scale=1.0)
        scaler.unscale_(loop.optimizer)
        loop.run.log_gradients()
        scaler.step(loop.optimizer)
        scaler.update()
        loop.optimizer.zero_grad()
    return loop.finish()


SCENARIOS = {scenario.__name__: scenario for scenario in (only_the_first_rank_logs, an_unknown_scaler_unscales)}
