"""Launches the slab kernels: which rows and columns a program takes, and what memory its sums need.

What a program adds up depends on shapes only, never on the device, so the same numbers give the same bits everywhere.
"""

# N rows, B examples, D elements, S slabs, W tiles of columns

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from noisescale.kernels.layer_norm_sq_norms import kernel
from noisescale.kernels.layer_norm_sq_norms.naive import WIDE, NormLayerCall, NormLayerGradients

LONGEST_ROW = 4096
"""Elements of a row up to which it stays in registers; of 16-bit rows twice as many."""

TILE = 1024
"""Columns of a tile of longer rows."""

ELEMENTS_A_THREAD = 16
"""Of a program's rows and columns. Two vector loads of 16-bit numbers; with 32 a program would spill."""

MOST_ROWS = 32
"""Of short rows that a program takes at once."""

SLAB_ROWS = 64
"""Rows of a slab: its fp32 sums then take 2 % of what the backward reads and writes in 16 bit anyway."""

FEW_ROWS = 2**14
"""Rows of a call below which slabs of 16 are cut, to have work for a whole device."""

SLAB_ROWS_OF_FEW = 16

MIN_WARPS = 4

FUSE_MULTIPLY_ADD = True
"""Said, because Triton's own default changes with its versions."""


@dataclass(frozen=True, slots=True)
class Slabs:
    """How the rows of a call are cut.

    Attributes:
        num_examples: That the kernel counts; 1 where rows are examples.
        num_positions: Rows of each.
        slab_positions: Rows of a slab within an example.
        num_slabs: Slabs of an example.
        slab_examples: Examples of a slab; above 1 only where an example is one slab.
        squares: Who squares, see `kernel.FINISH`.
    """

    num_examples: int
    num_positions: int
    slab_positions: int
    num_slabs: int
    slab_examples: int
    squares: int

    @property
    def num_programs(self) -> int:
        """S: slabs of the whole call."""
        return _cdiv(self.num_examples, self.slab_examples) * self.num_slabs


@dataclass(frozen=True, slots=True)
class Tile:
    """What one program holds at a time.

    Attributes:
        rows: Of activations.
        block: Columns, a power of 2.
        num_tiles: W; above 1 a row does not fit into one program.
        num_warps: Of 32 threads.
    """

    rows: int
    block: int
    num_tiles: int
    num_warps: int


def cut_slabs(num_examples: int, num_positions: int, *, num_elements: int) -> Slabs:
    """Slabs of about as many rows, none across the border of an example that goes on."""
    size = SLAB_ROWS if num_examples * num_positions >= FEW_ROWS else SLAB_ROWS_OF_FEW
    if num_positions == 1:
        num_slabs = _cdiv(num_examples, size)
        return Slabs(1, num_examples, min(size, num_examples), num_slabs, 1, kernel.BY_ROW.value)
    if num_positions <= size // 2 and num_elements <= LONGEST_ROW:
        # Longer rows leave no registers for a second sum.
        return Slabs(num_examples, num_positions, num_positions, 1, size // num_positions, kernel.BY_EXAMPLE.value)
    num_slabs = _cdiv(num_positions, size)
    return Slabs(num_examples, num_positions, _cdiv(num_positions, num_slabs), num_slabs, 1, kernel.FINISH.value)


def cut_tile(num_elements: int, slab_positions: int, *, is_16_bit: bool) -> Tile:
    """Rows and columns of a program, of 4 warps at least and 16 elements a thread at most."""
    longest = 2 * LONGEST_ROW if is_16_bit else LONGEST_ROW
    block = _power_of_2(num_elements) if num_elements <= longest else TILE
    num_warps = max(MIN_WARPS, block // (32 * ELEMENTS_A_THREAD))
    rows = min(MOST_ROWS, max(1, num_warps * 32 * ELEMENTS_A_THREAD // block), _power_of_2(slab_positions))
    return Tile(rows, block, _cdiv(num_elements, block), num_warps)


def fused_gradients(call: NormLayerCall, *, needs_grad_input: bool = True) -> NormLayerGradients:
    """The gradients of a call, and each example's squared norms; fp32, bf16 and fp16, at least one row.

    Args:
        call: What was called.
        needs_grad_input: Whether grad_input is wanted; without it the kernel only reads.

    Source: Gray et al. 2024, arXiv:2411.00999, section 4.
    """
    activation, grad_output = call.activation.contiguous(), call.grad_output.contiguous()
    weight = call.weight.contiguous()
    slabs = cut_slabs(call.num_examples, call.num_positions, num_elements=call.num_elements)
    is_16_bit = max(activation.element_size(), grad_output.element_size()) == 2
    tile = cut_tile(call.num_elements, slabs.slab_positions, is_16_bit=is_16_bit)
    means = tile.num_tiles > 1 and (needs_grad_input or call.statistics is None)
    grad_input = torch.empty_like(activation) if needs_grad_input else None
    sum_PSD = activation.new_empty((1 + call.is_centred, slabs.num_programs, call.num_elements), dtype=torch.float32)
    sq_norm_PBW = activation.new_empty((1 + call.is_centred, call.num_examples, tile.num_tiles), dtype=WIDE)
    on_device = torch.cuda.device(activation.device) if activation.is_cuda else contextlib.nullcontext()
    with on_device:
        known = _row_means(call, activation, grad_output, weight) if means else _known(call, activation)
        _launch(
            kernel.slab_gradients,
            (slabs.num_programs, tile.num_tiles),
            activation,
            grad_output,
            weight,
            *known,
            activation if grad_input is None else grad_input,
            sum_PSD[0],
            sum_PSD[-1],
            sq_norm_PBW[0],
            sq_norm_PBW[-1],
            slabs.num_examples,
            slabs.num_positions,
            slabs.slab_positions,
            slabs.num_slabs,
            slabs.slab_examples,
            call.eps,
            NUM_ELEMENTS=call.num_elements,
            BLOCK=tile.block,
            ROWS=tile.rows,
            IS_CENTRED=call.is_centred,
            HAS_GRAD_INPUT=needs_grad_input,
            HAS_STATISTICS=means or call.statistics is not None,
            HAS_MEANS=means,
            SQUARES=slabs.squares,
            num_warps=tile.num_warps,
        )
        if slabs.squares == kernel.FINISH.value:
            sq_norm_PBW = _finish(call, slabs, sum_PSD)
    sq_norm_PB = sq_norm_PBW.sum(2)
    # PyTorch's sum over rows has a fixed order, too.
    grad_PD = sum_PSD.sum(1, dtype=WIDE).to(call.weight.dtype).view(-1, *call.weight.shape)
    return NormLayerGradients(
        grad_input=grad_input,
        grad_weight=grad_PD[0],
        grad_bias=grad_PD[1] if call.is_centred else None,
        weight_sq_norm_B=sq_norm_PB[0],
        bias_sq_norm_B=sq_norm_PB[1] if call.is_centred else None,
    )


def _row_means(call: NormLayerCall, activation: Tensor, grad_output: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Mean, scale and the two means of the gradient of each row, [N] fp32 each, of rows that need several tiles."""
    means = activation.new_empty((4, call.num_rows), dtype=torch.float32).unbind(0)
    _launch(
        kernel.row_means,
        (call.num_rows,),
        activation,
        grad_output,
        weight,
        *means,
        call.eps,
        NUM_ELEMENTS=call.num_elements,
        BLOCK=TILE,
        IS_CENTRED=call.is_centred,
        num_warps=MIN_WARPS,
    )
    return means


def _known(call: NormLayerCall, unused: Tensor) -> tuple[Tensor, ...]:
    if call.statistics is None:
        return unused, unused, unused, unused
    mean_N, scale_N = (statistic.contiguous() for statistic in call.statistics)
    return mean_N, scale_N, unused, unused


def _finish(call: NormLayerCall, slabs: Slabs, sum_PSD: Tensor) -> Tensor:
    """[P, B, W] fp64: squared norms of examples that have several slabs."""
    block = min(TILE, _power_of_2(call.num_elements))
    num_tiles = _cdiv(call.num_elements, block)
    sq_norm_PBW = sum_PSD.new_empty((len(sum_PSD), call.num_examples, num_tiles), dtype=WIDE)
    _launch(
        kernel.example_sq_norms,
        (call.num_examples, num_tiles),
        sum_PSD[0],
        sum_PSD[-1],
        sq_norm_PBW[0],
        sq_norm_PBW[-1],
        slabs.num_slabs,
        NUM_ELEMENTS=call.num_elements,
        BLOCK=block,
        IS_CENTRED=call.is_centred,
        num_warps=MIN_WARPS,
    )
    return sq_norm_PBW


def _launch(function: Any, grid: tuple[int, ...], *arguments: object, **constants: object) -> None:
    """Run a kernel on the current device."""
    function[grid](*arguments, enable_fp_fusion=FUSE_MULTIPLY_ADD, **constants)


def _cdiv(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _power_of_2(least: int) -> int:
    return 1 << (least - 1).bit_length()
