"""How fast this device reads: one big buffer, summed up and nothing else, by whichever pass is quickest here."""

from collections.abc import Callable

import torch
import triton
from torch import Tensor
from triton import language as tl

GPU_ELEMENTS = 2**30
"""4 GiB in fp32: eighty times the largest L2, and still counted by 32 bits."""

CPU_ELEMENTS = 2**26

SHAPES = ((2048, 4), (4096, 8), (8192, 8), (8192, 16))
"""Elements a turn, and warps, of a program that reads."""

PROGRAMS_PER_PROCESSOR = (2, 4, 8)

OPTIONS = {"enable_fp_fusion": False}
"""Said, because Triton's default changes with 3.10; there is nothing to fuse."""


@triton.jit
def read_kernel(values, sums, numel, BLOCK: tl.constexpr):  # noqa: N803
    """Each program sums up every so many blocks; `numel` is a multiple of them all."""
    program = tl.program_id(0)
    lanes = tl.zeros([BLOCK], tl.float32)
    for start in range(program * BLOCK, numel, tl.num_programs(0) * BLOCK):
        lanes += tl.load(values + start + tl.arange(0, BLOCK))
    tl.store(sums + program, tl.sum(lanes))


class Roofline:
    """A buffer and the ways to read it.

    Attributes:
        num_bytes: That a pass reads.
        passes: By name; each reads the whole buffer once.

    Args:
        device: Whose memory.
        num_elements: Of the buffer, fp32; None: as many as leave no cache in doubt. A multiple of 8192.
    """

    def __init__(self, device: torch.device, num_elements: int | None = None) -> None:
        count = num_elements or (GPU_ELEMENTS if device.type == "cuda" else CPU_ELEMENTS)
        self._buffer = torch.ones(count, device=device)
        self.num_bytes = 4 * count
        buffer = self._buffer
        self.passes: dict[str, Callable[[], Tensor]] = {
            "torch.sum": lambda: buffer.sum(),
            "torch.linalg.vector_norm": lambda: torch.linalg.vector_norm(buffer),
        }
        if device.type == "cuda":
            for block, warps in SHAPES:
                for programs in PROGRAMS_PER_PROCESSOR:
                    self.passes[f"Triton, {block} elements, {warps} warps, {programs} a processor"] = self._triton(
                        block, warps, programs
                    )

    def _triton(self, block: int, warps: int, programs_per_processor: int) -> Callable[[], Tensor]:
        properties = torch.cuda.get_device_properties(self._buffer.device)
        programs = programs_per_processor * properties.multi_processor_count
        sums = torch.empty(programs, device=self._buffer.device)

        def read() -> Tensor:
            read_kernel[(programs,)](self._buffer, sums, self._buffer.numel(), BLOCK=block, num_warps=warps, **OPTIONS)
            return sums

        return read
