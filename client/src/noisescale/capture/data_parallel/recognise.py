"""Which kind of data-parallel job a model belongs to."""

import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch.distributed
from torch import Tensor, nn

from noisescale.capture import data_parallel
from noisescale.capture.data_parallel.job import DataParallelJob
from noisescale_core.errors import ConfigError


def recognise(
    model: nn.Module, parameters: Mapping[str, Tensor], *, is_by_rank: bool = False
) -> DataParallelJob | None:
    """The job; None for one process, or one that is measured by itself.

    Args:
        model: As given to `watch()`: the wrapper, or what it wraps.
        parameters: Those watched, by name.
        is_by_rank: Look at each rank's own gradient only.

    Raises:
        ConfigError: For jobs that would give wrong numbers, with the way out.
    """
    refuse_others(model)
    wrapper = find_ddp(model)
    if wrapper is not None:
        return data_parallel.DdpJob(wrapper, parameters, is_by_rank=is_by_rank)
    if is_sharded(model):
        return data_parallel.FsdpJob(model, parameters, is_by_rank=is_by_rank)
    distributed_tensor = loaded_class("torch.distributed.tensor", "DTensor")
    if distributed_tensor and any(isinstance(parameter, distributed_tensor) for parameter in parameters.values()):
        raise ConfigError("tensor-parallel parameters are not supported yet: hand norms to log_norms() instead")
    if is_by_rank:
        raise ConfigError('small_batches="ranks" needs a model in DistributedDataParallel or under fully_shard')
    return None


def show_sharded(model: Any) -> None:
    """After a forward FSDP2 may leave unsharded parameters in the modules; put those that the optimizer holds back."""
    sharded = loaded_class("torch.distributed.fsdp", "FSDPModule")
    if sharded is not None and isinstance(model, nn.Module):
        for module in model.modules():
            if isinstance(module, sharded):
                reshard: Callable[[], None] = getattr(module, "reshard")  # noqa: B009
                reshard()


def is_sharded(model: nn.Module) -> bool:
    """Whether some of the model is under `fully_shard` or `replicate`."""
    return contains(model, "torch.distributed.fsdp", "FSDPModule")


def world_size() -> int:
    """Processes of the whole job; 1 outside of one."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    return 1


def explain_alone(job: DataParallelJob) -> list[str]:
    """What to say where a process of several is measured by itself."""
    if job.num_ranks > 1 or world_size() == 1:
        return []
    return [
        f"this process of {world_size()} is measured alone: its model is neither in DistributedDataParallel nor under "
        "fully_shard; where you average gradients yourself, do it after log_gradients()"
    ]


def plain_names(names: Iterable[str], *, is_wrapped: bool) -> list[str]:
    """Names of parameters as a single process would have them.

    Args:
        names: As the watched model gives them.
        is_wrapped: The model may be a DistributedDataParallel, which puts "module." in front of each name.
    """
    plain = [".".join(part for part in name.split(".") if part != "_orig_mod") for name in names]  # of torch.compile
    if is_wrapped and all(name.startswith("module.") for name in plain):
        return [name.removeprefix("module.") for name in plain]
    return plain


def loaded_class(module: str, name: str) -> type | None:
    """A class of PyTorch that somebody has imported: no model can be of another, and importing it costs a second."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


def contains(model: nn.Module, module: str, name: str) -> bool:
    """Whether the model is or holds a module of this class."""
    kind = loaded_class(module, name)
    return kind is not None and any(isinstance(part, kind) for part in model.modules())


def find_ddp(model: nn.Module) -> nn.parallel.DistributedDataParallel | None:
    """The wrapper that this model is, holds, or lies in."""
    for module in model.modules():
        if isinstance(module, nn.parallel.DistributedDataParallel):
            return module
    if world_size() == 1:
        return None
    # Trainers hand out the model without its wrapper. No attribute leads back to it, so look once among all objects.
    for found in gc.get_objects():
        if issubclass(type(found), nn.parallel.DistributedDataParallel):
            wrapper: nn.parallel.DistributedDataParallel = found
            if any(module is model for module in wrapper.modules()):
                return wrapper
    return None


def refuse_others(model: nn.Module) -> None:
    """Raise for wrappers whose gradients cannot be seen from here.

    Raises:
        ConfigError: With the way out.
    """
    if contains(model, "torch.distributed.fsdp", "FullyShardedDataParallel"):
        raise ConfigError("FSDP1 is not supported: use fully_shard (FSDP2), or hand norms to log_norms()")
    if any(isinstance(module, nn.DataParallel) for module in model.modules()):
        raise ConfigError("nn.DataParallel is not supported: use DistributedDataParallel, as PyTorch advises")
    if type(model).__module__.partition(".")[0] == "deepspeed":
        raise ConfigError("DeepSpeed's engine is not supported: hand the norms of your ranks to log_norms()")
