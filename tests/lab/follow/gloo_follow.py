"""One of two gloo ranks: a real job that is followed, and what happens where only the first rank knows or fails.

Called as `gloo_follow.py RANK FOLDER`; writes what it found to FOLDER/result-RANK.json.
"""

import gc
import hashlib
import json
import logging
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import noisescale
from client_runs import make_kept_run
from noisescale_lab.follow import follower as follower_module
from noisescale_lab.follow.agreement import agreement
from noisy_mean import DIMENSIONS, Mean
from rate_training import Training
from scripted_run import Loop

MICRO_BATCH, NUM_STEPS = 4, 120


def a_job_of_two_ranks(rank):
    """Every step each rank puts `accumulation_steps` micro-batches through."""
    run, _ = make_kept_run()
    model = DistributedDataParallel(Mean(128.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    run.watch(model, optimizer)
    sizes = []
    follower = noisescale.follow(
        run, optimizer, price=128, dry_run=False, progress=lambda _: None,
        batches=noisescale.Batches(now=16, micro_batch=MICRO_BATCH, largest=4096, set=sizes.append),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(rank)
    for _ in range(NUM_STEPS):
        count = follower.accumulation_steps
        for place in range(count):
            model.require_backward_grad_sync = place == count - 1
            (model(torch.randn(MICRO_BATCH, DIMENSIONS, generator=generator)) / count).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
        follower.step()
    run.unwatch()
    return found(follower, optimizer, sizes)


def only_the_first_rank_knows_a_noise_scale(rank):
    loop = Loop().follow(devices=2).steps(200, phi=4096.0 if rank == 0 else 1.0)
    return found(loop.follower, loop.optimizer, loop.batches)


def a_first_rank_that_fails_keeps_nobody_waiting(rank):
    loop = Loop().follow(devices=2, strict=False)
    kept = follower_module.look
    if rank == 0:
        follower_module.look = lambda *_: 1 / 0
    loop.steps(100, phi=4096.0)
    follower_module.look = kept
    failed = found(loop.follower, loop.optimizer, loop.batches)
    loop.steps(100, phi=4096.0)
    return [failed, found(loop.follower, loop.optimizer, loop.batches)]


def the_group_of_an_agreement_ends_with_it(rank):
    """Threads of gloo while it is there and afterwards."""
    agreed = agreement()
    assert agreed.from_first(rank) == 0
    during = num_threads_of_gloo()
    del agreed
    gc.collect()
    return [during, num_threads_of_gloo()]


def a_raise_that_fails_is_undone_on_every_rank(rank):
    """What the ranks train with at the raise, a step later, and when it is undone."""
    training = Training(1e-3, torch.optim.AdamW, rank=rank, wrap=DistributedDataParallel).to_raise_on_probation()
    at_raise = trained(training)
    later = trained(training.steps(1, factor=30.0))
    while not training.follower.decisions[-1].is_undo:
        training.steps(1, factor=30.0)
    return {
        "at_raise": at_raise,
        "later": later,
        "undone": trained(training),
        "is_put_back": training.follower.decisions[-1].is_put_back,
        "found": found(training.follower, training.optimizer, []),
    }


def a_copy_that_fits_on_one_rank_alone(rank):
    """A raise that only rank 0 could undo, and the weights some steps later."""
    kept = follower_module.KeptWeights
    if rank == 1:
        follower_module.KeptWeights = no_room
    training = Training(2e-3, rank=rank, strict=False, wrap=DistributedDataParallel).steps(90)
    follower_module.KeptWeights = kept
    return {
        **trained(training),
        "found": found(training.follower, training.optimizer, []),
        "has_copy": training.follower._kept is not None,
        "faults": training.follower.faults.count,
        "said": training.said,
    }


def no_room(*_):
    raise torch.OutOfMemoryError("CUDA out of memory.")


def trained(training):
    """The bits of weights and optimizer states."""
    states = [value for state in training.optimizer.state.values() for value in state.values()]
    return {
        name: hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()
        for name, tensors in (("weights", training.model.parameters()), ("states", states))
    }


def num_threads_of_gloo():
    return sum("gloo_runloop" in task.read_text() for task in Path("/proc/self/task").glob("*/comm"))


def found(follower, optimizer, sizes):
    return {
        "decisions": [(decision.step, decision.to_batch, decision.to_rate_factor) for decision in follower.decisions],
        "sizes": sizes,
        "rate": optimizer.param_groups[0]["lr"],
        "state": follower.state_dict(),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable()
    own_rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'rendezvous'}",
        rank=own_rank,
        world_size=2,
        timeout=timedelta(seconds=30),
    )
    scenarios = (
        a_job_of_two_ranks,
        only_the_first_rank_knows_a_noise_scale,
        a_first_rank_that_fails_keeps_nobody_waiting,
        the_group_of_an_agreement_ends_with_it,
        a_raise_that_fails_is_undone_on_every_rank,
        a_copy_that_fits_on_one_rank_alone,
    )
    results = {scenario.__name__: scenario(own_rank) for scenario in scenarios}
    (folder / f"result-{own_rank}.json").write_text(json.dumps(results))
    dist.destroy_process_group()
