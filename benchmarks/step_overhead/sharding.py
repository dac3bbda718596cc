"""A model under FSDP2 in a job of one process, which is all that one GPU can show."""

import atexit

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def shard(model: nn.Module, device: torch.device) -> None:
    """Put each block and the root under `fully_shard`, as its documentation does.

    Args:
        model: With its layers in `blocks`.
        device: On which it is; NCCL on a GPU, gloo elsewhere.
    """
    if not distributed.is_initialized():
        backend = "nccl" if device.type == "cuda" else "gloo"
        distributed.init_process_group(backend, store=distributed.HashStore(), rank=0, world_size=1)
        atexit.register(distributed.destroy_process_group)
    mesh = init_device_mesh(device.type, (1,))
    blocks = model.blocks
    assert isinstance(blocks, nn.ModuleList)
    for part in (*blocks, model):
        fully_shard(part, mesh=mesh)
    if device.type != "cuda":
        model.set_force_sum_reduction_for_comms(True)  # type: ignore[operator]  # gloo has no average
