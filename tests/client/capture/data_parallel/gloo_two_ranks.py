"""Scenarios for a job of two ranks."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from gloo_training import Case, measured_on_ranks
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

TWO = [[4, 4], [4, 4]]
ONE = [[4], [4]]
UNEQUAL = [[7, 2, 3], [4, 5, 1]]


def ddp(hook: Callable[..., Any] | None = None, **arguments: Any) -> Callable[[nn.Module], nn.Module]:
    def wrap(model: nn.Module) -> nn.Module:
        wrapped = DistributedDataParallel(model, **arguments)
        if hook is not None:
            wrapped.register_comm_hook(None, hook)
        return wrapped

    return wrap


def fsdp(*, reshard: bool = True, **policy: Any) -> Callable[[nn.Module], nn.Module]:
    def wrap(model: nn.Module) -> nn.Module:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        arguments = {"mesh": mesh, "reshard_after_forward": reshard, "mp_policy": MixedPrecisionPolicy(**policy)}
        for part in (model[0], model[3], model):
            fully_shard(part, **arguments)
        # gloo has no average
        model.set_force_sum_reduction_for_comms(True)
        return model

    return wrap


def own_average(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A user's hook that averages in a way of its own."""
    summed = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return summed.then(lambda future: future.value()[0] / dist.get_world_size())


def sum_only(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A user's hook that forgets to divide."""
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda future: future.value()[0])


RANKS = {"small_batches": "ranks"}

SUMMED = {"loss_reduction": "sum"}

CASES = {
    "ddp, accumulated": Case(TWO, ddp()),
    "ddp, accumulated in buckets": Case(TWO, ddp(gradient_as_bucket_view=True)),
    "ddp, averaged in each micro-batch": Case(UNEQUAL, ddp(), no_sync=False),
    "ddp, averaged in each micro-batch in buckets": Case(TWO, ddp(gradient_as_bucket_view=True), no_sync=False),
    "ddp, one micro-batch a rank": Case(ONE, ddp()),
    "ddp, one micro-batch a rank in buckets": Case(ONE, ddp(gradient_as_bucket_view=True)),
    "ddp, unequal": Case(UNEQUAL, ddp()),
    "ddp, marked": Case(UNEQUAL, ddp(), mark=True),
    "ddp, marked, one micro-batch a rank": Case(ONE, ddp(), mark=True),
    "ddp, hook of PyTorch": Case(TWO, ddp(default_hooks.allreduce_hook)),
    "ddp, hook of the user": Case(TWO, ddp(own_average)),
    "ddp, logged on both": Case(TWO, ddp(), log_on=(0, 1)),
    "ddp, a batch size logged": Case(TWO, ddp(), batch_size=True),
    "ddp, a summed loss": Case(TWO, ddp(), is_summed=True, watch=SUMMED),
    "ddp, 32 bit": Case(TWO, ddp(), dtype=torch.float32),
    "ddp, by rank": Case(UNEQUAL, ddp(), watch=RANKS),
    "fsdp, accumulated": Case(TWO, fsdp()),
    "fsdp, averaged in each micro-batch": Case(UNEQUAL, fsdp(), no_sync=False),
    "fsdp, one micro-batch a rank": Case(ONE, fsdp(reshard=False)),
    "fsdp, unequal and marked": Case(UNEQUAL, fsdp(), mark=True),
    "fsdp, 32 bit": Case(TWO, fsdp(), dtype=torch.float32),
    "fsdp, by rank": Case(UNEQUAL, fsdp(), watch=RANKS),
}
"""Measured exactly as in one process."""

OTHERS = {
    "16 bit between ranks": Case(TWO, ddp(default_hooks.fp16_compress_hook), dtype=torch.float32),
    "sums": Case(TWO, ddp(sum_only)),
    "static graph": Case(TWO, ddp(static_graph=True), no_sync=False),
}
"""Measured with a flag."""

SCENARIOS = {name: functools.partial(measured_on_ranks, case) for name, case in {**CASES, **OTHERS}.items()}
