"""FSDP2's reduce-scatter, with a look at what goes in: this rank's own gradient, one flat buffer for each module.

The public door for it is `FSDPModule.set_custom_reduce_scatter`. What a user has put there stays in charge. It is not
called where there is one rank, and what it sees lies in chunks: rank after rank, in each the parts of all parameters.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter

from noisescale.kernels.squared_norms import FlatSegments

MAX_LAYOUTS = 1024
"""Modules whose layout is remembered."""

SeeBuffer = Callable[[Tensor], None]


class ObservedReduceScatter(ReduceScatter):
    """Shows the input of a reduce-scatter before it is sent.

    Args:
        inner: Does the work.
        see: Gets the flat input, in the stream in which it is sent.
    """

    def __init__(self, inner: ReduceScatter, see: SeeBuffer) -> None:
        self.inner = inner
        self._see = see

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Memory for both ends."""
        buffer: Tensor = self.inner.allocate(size, dtype=dtype, device=device)
        return buffer

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> dist.Work | None:
        """Look, then send."""
        self._see(input_tensor)
        return self.inner(output_tensor, input_tensor, group, op, async_op)


@lru_cache(maxsize=MAX_LAYOUTS)
def segments_of(
    lengths: tuple[int, ...],
    are_wanted: tuple[bool, ...],
    num_ranks: int,
    dtype: torch.dtype,
    device: torch.device,
) -> FlatSegments:
    """The parameters in the flat input of a reduce-scatter, each with the zeros that fill it up: squares add the same.

    Args:
        lengths: Elements of each parameter that go to one rank, in FSDP's order.
        are_wanted: Which of them are segments.
        num_ranks: R, shards.
        dtype: Of the input.
        device: Where it is.
    """
    numbers = itertools.accumulate(are_wanted)
    segment_of = [number - 1 if is_wanted else -1 for number, is_wanted in zip(numbers, are_wanted, strict=True)]
    return FlatSegments(lengths * num_ranks, segment_of * num_ranks, sum(are_wanted), dtype=dtype, device=device)


def divided_before(dtype: torch.dtype, divisor: float) -> float:
    """What FSDP has divided a buffer by before it is sent.

    Only where sums could overflow: in fp16, and by the same rule in fp64, it takes about the root of the divisor first.

    Args:
        dtype: Of the buffer.
        divisor: What gradients are divided by in all.
    """
    before = 1.0
    if dtype not in (torch.float32, torch.bfloat16):
        while divisor % before == 0 and divisor / before > before:
            before *= 2
    return before
