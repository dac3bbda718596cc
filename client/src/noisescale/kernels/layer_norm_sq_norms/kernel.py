"""The backward of a normalisation layer in slabs of rows that never cross an example's border.

Each program adds up the rows of one slab in fp32 lanes, so the sum over an example's slabs is that example's own
gradient, and its norm costs no further pass over activations. Sums of slabs go to memory and are added up in fixed
order: no atomics, so the same numbers give the same bits.

Rows whose elements fit into the registers of one program are read once. Longer ones are cut into tiles: `row_means`
reads them first, and `slab_gradients` then runs once a tile.

Departure from the usual kernels of this layer, which cut the rows of a batch evenly: slabs end where an example ends.
"""

# R rows of a tile, D elements of a tile
# mypy: ignore-errors
# Arguments are values of Triton's own language, which has no usable types.

import triton
import triton.language as tl

FINISH, BY_EXAMPLE, BY_ROW = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
"""Who squares: `example_sq_norms` where an example has several slabs; the program itself, where its slab holds whole
examples; for each row, where a row is an example."""


@triton.jit
def _statistics(value_RD, is_inside_RD, eps, NUM_ELEMENTS: tl.constexpr, IS_CENTRED: tl.constexpr):
    """The row minus its mean, and 1 / √(variance + eps)."""
    centred_RD = value_RD
    if IS_CENTRED:
        mean_R = tl.sum(value_RD, 1) / NUM_ELEMENTS
        centred_RD = tl.where(is_inside_RD, value_RD - mean_R[:, None], 0.0)
    variance_R = tl.sum(centred_RD * centred_RD, 1) / NUM_ELEMENTS
    return centred_RD, 1.0 / tl.sqrt_rn(variance_R + eps)


@triton.jit
def _sq_norm(value, AXIS: tl.constexpr):
    wide = value.to(tl.float64)
    return tl.sum(wide * wide, AXIS)


@triton.jit
def row_means(
    activation,
    grad_output,
    weight,
    mean,
    scale,
    along_mean,
    inner_mean,
    eps,
    NUM_ELEMENTS: tl.constexpr,
    BLOCK: tl.constexpr,
    IS_CENTRED: tl.constexpr,
):
    """Of one long row: mean, 1 / √(variance + eps), ⟨n h⟩ and ⟨h⟩, with h = weight · grad_output.

    Grid: rows.
    """
    row = tl.program_id(0)
    start = row * tl.full([], NUM_ELEMENTS, tl.int64)
    column_D = tl.arange(0, BLOCK)
    mean_value = tl.full([], 0.0, tl.float32)
    if IS_CENTRED:
        sum_D = tl.zeros([BLOCK], tl.float32)
        for first in range(0, NUM_ELEMENTS, BLOCK):
            is_inside_D = first + column_D < NUM_ELEMENTS
            sum_D += tl.load(activation + start + first + column_D, mask=is_inside_D, other=0.0).to(tl.float32)
        mean_value = tl.sum(sum_D, 0) / NUM_ELEMENTS
    square_D = tl.zeros([BLOCK], tl.float32)
    along_D = tl.zeros([BLOCK], tl.float32)
    inner_sum_D = tl.zeros([BLOCK], tl.float32)
    for first in range(0, NUM_ELEMENTS, BLOCK):
        is_inside_D = first + column_D < NUM_ELEMENTS
        value_D = tl.load(activation + start + first + column_D, mask=is_inside_D, other=0.0).to(tl.float32)
        grad_D = tl.load(grad_output + start + first + column_D, mask=is_inside_D, other=0.0).to(tl.float32)
        weight_D = tl.load(weight + first + column_D, mask=is_inside_D, other=0.0).to(tl.float32)
        centred_D = tl.where(is_inside_D, value_D - mean_value, 0.0)
        square_D += centred_D * centred_D
        along_D += centred_D * grad_D * weight_D
        inner_sum_D += grad_D * weight_D
    scale_value = 1.0 / tl.sqrt_rn(tl.sum(square_D, 0) / NUM_ELEMENTS + eps)
    tl.store(mean + row, mean_value)
    tl.store(scale + row, scale_value)
    tl.store(along_mean + row, scale_value * tl.sum(along_D, 0) / NUM_ELEMENTS)
    tl.store(inner_mean + row, tl.sum(inner_sum_D, 0) / NUM_ELEMENTS)


@triton.jit
def _sums_of_rows(
    activation,
    grad_output,
    weight_D,
    mean,
    scale,
    along_mean,
    inner_mean,
    grad_input,
    weight_sq_norm,
    bias_sq_norm,
    first_row,
    num_rows,
    eps,
    tile,
    num_tiles,
    NUM_ELEMENTS: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    IS_CENTRED: tl.constexpr,
    HAS_GRAD_INPUT: tl.constexpr,
    HAS_STATISTICS: tl.constexpr,
    HAS_MEANS: tl.constexpr,
    SQUARES: tl.constexpr,
):
    """What adjacent rows contribute to the gradients of weight and bias, [BLOCK] fp32 each; writes their grad_input."""
    row_R = tl.arange(0, ROWS)
    column_D = tile * BLOCK + tl.arange(0, BLOCK)
    is_column_D = column_D < NUM_ELEMENTS
    elements_a_row = tl.full([], NUM_ELEMENTS, tl.int64)
    offset_RD = row_R[:, None] * NUM_ELEMENTS + column_D[None, :]
    weight_sum_RD = tl.zeros([ROWS, BLOCK], tl.float32)
    bias_sum_RD = tl.zeros([ROWS, BLOCK], tl.float32)
    for row in range(first_row, first_row + num_rows, ROWS):
        start = row * elements_a_row
        is_row_R = row + row_R < first_row + num_rows
        is_inside_RD = is_row_R[:, None] & is_column_D[None, :]
        value_RD = tl.load(activation + start + offset_RD, mask=is_inside_RD, other=0.0).to(tl.float32)
        grad_RD = tl.load(grad_output + start + offset_RD, mask=is_inside_RD, other=0.0).to(tl.float32)
        if HAS_STATISTICS:
            scale_R = tl.load(scale + row + row_R, mask=is_row_R, other=0.0)
            centred_RD = value_RD
            if IS_CENTRED:
                mean_R = tl.load(mean + row + row_R, mask=is_row_R, other=0.0)
                centred_RD = value_RD - mean_R[:, None]
        else:
            centred_RD, scale_R = _statistics(value_RD, is_inside_RD, eps, NUM_ELEMENTS, IS_CENTRED)
        # Rows past the end would be 0 · ∞ where eps is 0.
        scale_R = tl.where(is_row_R, scale_R, 0.0)
        normalised_RD = centred_RD * scale_R[:, None]
        if HAS_GRAD_INPUT:
            inner_RD = grad_RD * weight_D[None, :]
            if HAS_MEANS:
                along_R = tl.load(along_mean + row + row_R, mask=is_row_R, other=0.0)
            else:
                along_R = tl.sum(normalised_RD * inner_RD, 1) / NUM_ELEMENTS
            rest_RD = inner_RD - normalised_RD * along_R[:, None]
            if IS_CENTRED:
                if HAS_MEANS:
                    inner_R = tl.load(inner_mean + row + row_R, mask=is_row_R, other=0.0)
                else:
                    inner_R = tl.sum(inner_RD, 1) / NUM_ELEMENTS
                rest_RD -= inner_R[:, None]
            result_RD = (rest_RD * scale_R[:, None]).to(grad_input.dtype.element_ty)
            tl.store(grad_input + start + offset_RD, result_RD, mask=is_inside_RD)
        term_RD = grad_RD * normalised_RD
        weight_sum_RD += term_RD
        if IS_CENTRED:
            bias_sum_RD += grad_RD
        if SQUARES == BY_ROW:
            out_R = (row + row_R) * num_tiles + tile
            tl.store(weight_sq_norm + out_R, _sq_norm(term_RD, 1), mask=is_row_R)
            if IS_CENTRED:
                tl.store(bias_sq_norm + out_R, _sq_norm(grad_RD, 1), mask=is_row_R)
    return tl.sum(weight_sum_RD, 0), tl.sum(bias_sum_RD, 0)


@triton.jit
def slab_gradients(
    activation,
    grad_output,
    weight,
    mean,
    scale,
    along_mean,
    inner_mean,
    grad_input,
    weight_sum,
    bias_sum,
    weight_sq_norm,
    bias_sq_norm,
    num_examples,
    num_positions,
    slab_positions,
    num_slabs,
    slab_examples,
    eps,
    NUM_ELEMENTS: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    IS_CENTRED: tl.constexpr,
    HAS_GRAD_INPUT: tl.constexpr,
    HAS_STATISTICS: tl.constexpr,
    HAS_MEANS: tl.constexpr,
    SQUARES: tl.constexpr,
):
    """Gradients of one slab of rows, in one tile of columns.

    Grid: slabs (of one example after another, or of several whole examples each), tiles of BLOCK columns. Writes
    grad_input, the slab's sums [slabs, elements] fp32, and squared norms [examples, tiles] fp64 as SQUARES says.
    """
    slab, tile, num_tiles = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    column_D = tile * BLOCK + tl.arange(0, BLOCK)
    is_column_D = column_D < NUM_ELEMENTS
    weight_D = tl.load(weight + column_D, mask=is_column_D, other=0.0).to(tl.float32)
    if SQUARES == BY_EXAMPLE:
        weight_sum_D = tl.zeros([BLOCK], tl.float32)
        bias_sum_D = tl.zeros([BLOCK], tl.float32)
        first_example = slab * slab_examples
        for example in range(first_example, tl.minimum(first_example + slab_examples, num_examples)):
            weight_part_D, bias_part_D = _sums_of_rows(
                activation, grad_output, weight_D, mean, scale, along_mean, inner_mean, grad_input, weight_sq_norm,
                bias_sq_norm, example * num_positions, num_positions, eps, tile, num_tiles, NUM_ELEMENTS, BLOCK, ROWS,
                IS_CENTRED, HAS_GRAD_INPUT, HAS_STATISTICS, HAS_MEANS, SQUARES,
            )  # fmt: skip
            tl.store(weight_sq_norm + example * num_tiles + tile, _sq_norm(weight_part_D, 0))
            if IS_CENTRED:
                tl.store(bias_sq_norm + example * num_tiles + tile, _sq_norm(bias_part_D, 0))
            weight_sum_D += weight_part_D
            bias_sum_D += bias_part_D
    else:
        first_position = slab % num_slabs * slab_positions
        weight_sum_D, bias_sum_D = _sums_of_rows(
            activation, grad_output, weight_D, mean, scale, along_mean, inner_mean, grad_input, weight_sq_norm,
            bias_sq_norm, slab // num_slabs * num_positions + first_position,
            tl.minimum(slab_positions, num_positions - first_position), eps, tile, num_tiles, NUM_ELEMENTS, BLOCK, ROWS,
            IS_CENTRED, HAS_GRAD_INPUT, HAS_STATISTICS, HAS_MEANS, SQUARES,
        )  # fmt: skip
    out_D = slab * tl.full([], NUM_ELEMENTS, tl.int64) + column_D
    tl.store(weight_sum + out_D, weight_sum_D, mask=is_column_D)
    if IS_CENTRED:
        tl.store(bias_sum + out_D, bias_sum_D, mask=is_column_D)


@triton.jit
def example_sq_norms(
    weight_sum,
    bias_sum,
    weight_sq_norm,
    bias_sq_norm,
    num_slabs,
    NUM_ELEMENTS: tl.constexpr,
    BLOCK: tl.constexpr,
    IS_CENTRED: tl.constexpr,
):
    """Adds up the slabs of one example in fp64 and squares, in one tile of columns.

    Grid: examples, tiles of BLOCK columns. Writes squared norms [examples, tiles] fp64.
    """
    example, tile = tl.program_id(0), tl.program_id(1)
    column_D = tile * BLOCK + tl.arange(0, BLOCK)
    is_column_D = column_D < NUM_ELEMENTS
    elements_a_row = tl.full([], NUM_ELEMENTS, tl.int64)
    weight_D = tl.zeros([BLOCK], tl.float64)
    bias_D = tl.zeros([BLOCK], tl.float64)
    for slab in range(0, num_slabs):
        at_D = (example * num_slabs + slab) * elements_a_row + column_D
        weight_D += tl.load(weight_sum + at_D, mask=is_column_D, other=0.0).to(tl.float64)
        if IS_CENTRED:
            bias_D += tl.load(bias_sum + at_D, mask=is_column_D, other=0.0).to(tl.float64)
    out = example * tl.num_programs(1) + tile
    tl.store(weight_sq_norm + out, _sq_norm(weight_D, 0))
    if IS_CENTRED:
        tl.store(bias_sq_norm + out, _sq_norm(bias_D, 0))
