"""Scenarios for a job of four ranks."""

import functools
from collections.abc import Callable

import torch
from gloo_training import Case, measured_on_ranks
from gloo_two_ranks import ddp, fsdp
from torch import nn
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

FOUR = [[2, 2], [2, 2], [2, 2], [2, 2]]
UNEQUAL = [[3, 1], [2, 2], [1, 2], [5, 4]]

UNEQUAL_NUMBERS = [[3, 1], [2], [1, 1, 2], [5, 4]]  # FSDP's own all-gathers want the same number on every rank


def hybrid(*, shards: int) -> Callable[[nn.Module], nn.Module]:
    """Shards inside groups of ranks, copies between them."""

    def wrap(model: nn.Module) -> nn.Module:
        mesh = init_device_mesh("cpu", (4 // shards, shards), mesh_dim_names=("replicate", "shard"))
        for part in (model[0], model[3], model):
            fully_shard(part, mesh=mesh)
        model.set_force_sum_reduction_for_comms(True)
        return model

    return wrap


def replicated(model: nn.Module) -> nn.Module:
    """The composable replacement of DistributedDataParallel."""
    replicate(model, mesh=init_device_mesh("cpu", (4,), mesh_dim_names=("replicate",)))
    model.set_force_sum_reduction_for_comms(True)
    return model


CASES = {
    "ddp, accumulated": Case(FOUR, ddp()),
    "ddp, unequal": Case(UNEQUAL_NUMBERS, ddp(gradient_as_bucket_view=True)),
    "fsdp, accumulated": Case(FOUR, fsdp()),
    "fsdp, unequal": Case(UNEQUAL, fsdp()),
    "fsdp, copies of shards": Case(FOUR, hybrid(shards=2)),
    "fsdp, copies of shards, 32 bit": Case(FOUR, hybrid(shards=2), dtype=torch.float32),
    "fsdp, copies of shards, by rank": Case(FOUR, hybrid(shards=2), watch={"small_batches": "ranks"}),
    "fsdp, by rank": Case(UNEQUAL, fsdp(), watch={"small_batches": "ranks"}),
    "replicate": Case(FOUR, replicated),
}
SCENARIOS = {name: functools.partial(measured_on_ranks, case) for name, case in CASES.items()}
