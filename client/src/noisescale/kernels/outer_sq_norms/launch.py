"""Launches the kernel: the size of its tiles, and where the numbers of an example lie."""

# N examples, T positions, O outputs, I inputs

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from noisescale.kernels.outer_sq_norms import kernel


@dataclass(frozen=True, slots=True)
class Tile:
    """What one program makes, and how.

    Attributes:
        outputs: Along O.
        inputs: Along I.
        positions: Read at a time.
        num_warps: Of 32 threads.
        num_stages: Reads under way while the last are multiplied.
    """

    outputs: int
    inputs: int
    positions: int
    num_warps: int
    num_stages: int


LARGE = Tile(128, 256, 32, 8, 4)
"""The quickest of ten on an H200, or within 3 % of it (benchmarks/results/gpu_outer_products-nvidia-h200.csv)."""

MASKED = Tile(128, 256, 64, 8, 3)
"""For shapes with edges, where it is quicker by 18 %: fewer masks."""

SMALL = Tile(64, 64, 64, 4, 4)
"""For matrices that would leave most of a large tile empty."""


MOST_POSITIONS = 64
"""Of a tile."""


def tile_of(num_positions: int, num_outputs: int, num_inputs: int) -> Tile:
    """The tile for products of this shape."""
    if min(num_outputs, num_inputs) <= SMALL.outputs:
        return SMALL
    has_edges = num_positions % LARGE.positions or num_outputs % LARGE.outputs or num_inputs % LARGE.inputs
    return MASKED if has_edges else LARGE


def fused_outer_sq_norms(grad_output_NTO: Tensor, activation_NTI: Tensor, tile: Tile | None = None) -> Tensor:
    """[N] fp64: |Σ_t grad_output ⊗ activation|² of each example, without waiting for the device.

    Args:
        grad_output_NTO: bf16 or fp16, at least one number.
        activation_NTI: Of the same type.
        tile: For measuring; None: the one for this shape.
    """
    g, a = _side_by_side(grad_output_NTO), _side_by_side(activation_NTI)
    (num_examples, num_positions, num_outputs), num_inputs = g.shape, a.shape[2]
    cut = tile or tile_of(num_positions, num_outputs, num_inputs)
    num_output_tiles, num_input_tiles = -(-num_outputs // cut.outputs), -(-num_inputs // cut.inputs)
    num_tiles = num_output_tiles * num_input_tiles
    sq_norm = g.new_empty((num_examples, num_tiles), dtype=torch.float64)
    is_even = not (num_positions % cut.positions or num_outputs % cut.outputs or num_inputs % cut.inputs)
    with torch.cuda.device(g.device) if g.is_cuda else contextlib.nullcontext():
        _launch(
            kernel.tile_sq_norms,
            (num_examples * num_tiles,),
            g,
            a,
            sq_norm,
            num_positions,
            num_outputs,
            num_inputs,
            g.stride(0),
            g.stride(1),
            a.stride(0),
            a.stride(1),
            num_output_tiles,
            num_tiles,
            BLOCK_O=cut.outputs,
            BLOCK_I=cut.inputs,
            BLOCK_T=cut.positions,
            IS_EVEN=is_even,
            UPCAST=not g.is_cuda,
            num_warps=cut.num_warps,
            num_stages=cut.num_stages,
        )
    return sq_norm.sum(1)


def _side_by_side(values: Tensor) -> Tensor:
    """With the numbers of a position next to each other, and positions that 32 bits count, as the kernel does."""
    is_within_reach = values.stride(1) * MOST_POSITIONS < 1 << 31
    return values if values.stride(2) == 1 and is_within_reach else values.contiguous()


def _launch(function: Any, grid: tuple[int, ...], *arguments: object, **constants: object) -> None:
    """Run the kernel on the current device."""
    function[grid](*arguments, enable_fp_fusion=True, **constants)
