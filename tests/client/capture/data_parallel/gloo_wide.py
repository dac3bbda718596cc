"""Rarer ways of training on two ranks, for `make test-full`."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
from gloo_training import Case, measured_on_ranks
from gloo_two_ranks import ONE, RANKS, TWO, UNEQUAL, ddp, fsdp, own_average
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from client_runs import make_batch, make_kept_run, make_model


class Checkpointed(nn.Sequential):
    """Its hidden layers are computed again in the backward."""

    def __init__(self, model: nn.Sequential, *, use_reentrant: bool) -> None:
        super().__init__(*model)
        self._use_reentrant = use_reentrant

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self[0](inputs)
        hidden = checkpoint(lambda value: self[2](self[1](value)), hidden, use_reentrant=self._use_reentrant)
        return self[3](hidden)


def checkpointed(*, use_reentrant: bool) -> Callable[[], nn.Module]:
    return lambda: Checkpointed(make_model(), use_reentrant=use_reentrant)


def divided_by(factor: float) -> Callable[[nn.Module], nn.Module]:
    """FSDP2 with a divisor of the user's."""

    def wrap(model: nn.Module) -> nn.Module:
        sharded = fsdp()(model)
        for part in sharded.modules():
            if hasattr(part, "set_gradient_divide_factor"):
                part.set_gradient_divide_factor(factor)
        return sharded

    return wrap


def offloaded(model: nn.Module) -> nn.Module:
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)), offload_policy=CPUOffloadPolicy(pin_memory=False))
    model.set_force_sum_reduction_for_comms(True)
    return model


def compiled_outside(model: nn.Module) -> nn.Module:
    return torch.compile(DistributedDataParallel(model), backend="eager")


def compiled_inside(model: nn.Module) -> nn.Module:
    return DistributedDataParallel(torch.compile(model, backend="eager"))


CASES = {
    "ddp, unused parameters looked for": Case(TWO, ddp(find_unused_parameters=True)),
    "ddp, unused parameters looked for in buckets": Case(
        TWO, ddp(find_unused_parameters=True, gradient_as_bucket_view=True)
    ),
    "ddp, checkpointed": Case(TWO, ddp(), make=checkpointed(use_reentrant=False)),
    "ddp, checkpointed by re-entering": Case(TWO, ddp(), make=checkpointed(use_reentrant=True)),
    "ddp, hook of the user in buckets": Case(UNEQUAL, ddp(own_average, gradient_as_bucket_view=True)),
    "ddp, one bucket a parameter": Case(UNEQUAL, ddp(bucket_cap_mb=1e-6)),
    "ddp, by rank in buckets": Case(TWO, ddp(gradient_as_bucket_view=True), watch=RANKS),
    "ddp, compiled outside": Case(TWO, compiled_outside),
    "ddp, compiled inside": Case(TWO, compiled_inside),
    "ddp, equal weights": Case(TWO, ddp(), watch={"weighting": "equal"}),
    "ddp, no groups": Case(ONE, ddp(), watch={"groups": "none"}),
    "ddp, many steps": Case(UNEQUAL, ddp(), num_steps=30),
    "fsdp, kept unsharded": Case(UNEQUAL, fsdp(reshard=False)),
    "fsdp, checkpointed": Case(TWO, fsdp(), make=checkpointed(use_reentrant=False)),
    "fsdp, by rank and marked": Case(UNEQUAL, fsdp(), mark=True, watch=RANKS),
    "fsdp, by rank, 32 bit": Case(TWO, fsdp(), dtype=torch.float32, watch=RANKS),
    "fsdp, on the host": Case(TWO, offloaded),
    "fsdp, summed over ranks": Case(UNEQUAL, divided_by(1.0), divisor=1.0),
    "fsdp, divided by three": Case(TWO, divided_by(3.0), divisor=3.0),
    "fsdp, many steps": Case(UNEQUAL, fsdp(), num_steps=30),
}

OTHERS = {
    "static graph, checkpointed by re-entering": Case(
        TWO, ddp(static_graph=True), no_sync=False, make=checkpointed(use_reentrant=True)
    ),
}


def examples_of_ranks(rank: int, num_ranks: int) -> list[Any]:
    """Each example a small batch, on ranks with different numbers of them."""
    model = DistributedDataParallel(make_model().double())
    run, kept = make_kept_run(rank=rank)
    run.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), small_batches="per_example")
    for number in range(2):
        inputs, classes = make_batch(3 + rank, seed=10 * rank + number)
        with contextlib.nullcontext() if number else model.no_sync():
            output = model(inputs.double())
            (nn.functional.cross_entropy(output, classes, reduction="sum") * 2 / 14).backward()
    run.log_gradients()
    run.finish()
    return [(row.sum_trace_cov, row.sum_grad_sq_norm, row.num_micro_batches, row.flags) for row in kept.rows()]


def two_optimizers(rank: int, num_ranks: int) -> list[Any]:
    """Two models in wrappers of their own, watched by names."""
    models = [DistributedDataParallel(make_model(seed).double()) for seed in (0, 1)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    run, kept = make_kept_run(rank=rank)
    for name, model, optimizer in zip("ab", models, optimizers, strict=True):
        run.watch(model, optimizer, name=name)
    for step in range(3):
        for name, model, optimizer in zip("ab", models, optimizers, strict=True):
            for number in range(2):
                inputs, classes = make_batch(4, seed=100 * step + 10 * rank + number)
                nn.functional.cross_entropy(model(inputs.double()), classes).div(2).backward()
            run.log_gradients(name=name)
            optimizer.step()
            optimizer.zero_grad()
    run.finish()
    return [(row.flags, row.num_micro_batches) for row in kept.rows()]


def zero_redundancy(rank: int, num_ranks: int) -> list[Any]:
    """Each rank's optimizer holds a part of the parameters, all of them have gradients."""
    from torch.distributed.optim import ZeroRedundancyOptimizer  # its import warns

    model = DistributedDataParallel(make_model().double())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    run, kept = make_kept_run(rank=rank)
    run.watch(model, optimizer)
    for step in range(3):
        for number in range(2):
            inputs, classes = make_batch(4, seed=100 * step + 10 * rank + number)
            nn.functional.cross_entropy(model(inputs.double()), classes).div(2).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    run.finish()
    return [(row.flags, row.num_micro_batches) for row in kept.rows()]


def an_approximating_hook(rank: int, num_ranks: int) -> list[int]:
    """PowerSGD sends a low rank: what comes back is no mean."""
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)))
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run, kept = make_kept_run(rank=rank)
    run.watch(model, optimizer)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(5):
        for _ in range(2):
            model(torch.randn(8, 64, generator=generator)).square().mean().div(2).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()
    run.finish()
    return [row.flags for row in kept.rows()]


FUNCTIONS = [examples_of_ranks, two_optimizers, zero_redundancy, an_approximating_hook]

SCENARIOS = {
    **{name: functools.partial(measured_on_ranks, case) for name, case in {**CASES, **OTHERS}.items()},
    **{function.__name__: function for function in FUNCTIONS},
}
