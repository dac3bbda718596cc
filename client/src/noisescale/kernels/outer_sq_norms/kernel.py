"""|Σ_t g_t ⊗ a_t|² by the product itself, which never leaves the registers.

A program makes one tile of one example's product, as a matrix product of the weight's gradient would, squares it and
adds it up; memory sees one number a tile. Numbers of 16 bit are multiplied exactly and added up in fp32. Squares of a
tile are added up in fp32 as a tree, tiles in fp64 in fixed order: no atomics, so the same numbers give the same bits.

Departure from Goodfellow 2015 (arXiv:1510.01799) and from Gray et al. 2024 (arXiv:2411.00999), who write the product
to memory or multiply Gram matrices, which cancel: what is computed is the same, without the traffic.
"""

# N examples, T positions, O outputs, I inputs; o, i, t of a tile
# mypy: ignore-errors
# Arguments are values of Triton's own language, which has no usable types.

import triton
import triton.language as tl


@triton.jit
def tile_sq_norms(
    grad_output,
    activation,
    sq_norm,
    num_positions,
    num_outputs,
    num_inputs,
    grad_example,
    grad_position,
    activation_example,
    activation_position,
    num_output_tiles,
    num_tiles,
    BLOCK_O: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_T: tl.constexpr,
    IS_EVEN: tl.constexpr,
    UPCAST: tl.constexpr,
):
    """One tile of one example.

    Grid: the tiles of one example after another. Neighbouring programs share an example, whose numbers are then in the
    cache.

    Args:
        grad_output: g, [N, T, O]; the numbers of a position lie side by side.
        activation: a, [N, T, I]; likewise.
        sq_norm: The result, fp64 [N, tiles].
        num_positions: T.
        num_outputs: O.
        num_inputs: I.
        grad_example: Elements of g from one example to the next.
        grad_position: Elements of g from one position to the next.
        activation_example: Of a.
        activation_position: Of a.
        num_output_tiles: Tiles side by side along O.
        num_tiles: Of an example.
        BLOCK_O: Outputs of a tile.
        BLOCK_I: Inputs of a tile.
        BLOCK_T: Positions read at a time.
        IS_EVEN: Whether T, O and I are multiples of the three: nothing is masked.
        UPCAST: Whether to multiply in fp32, where an interpreter stands in for the tensor cores.
    """
    program = tl.program_id(0)
    tile, example = program % num_tiles, (program // num_tiles).to(tl.int64)
    output_o = (tile % num_output_tiles) * BLOCK_O + tl.arange(0, BLOCK_O)
    input_i = (tile // num_output_tiles) * BLOCK_I + tl.arange(0, BLOCK_I)
    position_t = tl.arange(0, BLOCK_T)
    grad_to = grad_output + example * grad_example + position_t[:, None] * grad_position + output_o[None, :]
    activation_ti = (
        activation + example * activation_example + position_t[:, None] * activation_position + input_i[None, :]
    )
    product_oi = tl.zeros([BLOCK_O, BLOCK_I], tl.float32)
    for first in range(0, num_positions, BLOCK_T):
        if IS_EVEN:
            g_to = tl.load(grad_to)
            a_ti = tl.load(activation_ti)
        else:
            is_inside_t = first + position_t < num_positions
            g_to = tl.load(grad_to, mask=is_inside_t[:, None] & (output_o < num_outputs)[None, :], other=0.0)
            a_ti = tl.load(activation_ti, mask=is_inside_t[:, None] & (input_i < num_inputs)[None, :], other=0.0)
        if UPCAST:
            g_to = g_to.to(tl.float32)
            a_ti = a_ti.to(tl.float32)
        product_oi = tl.dot(tl.trans(g_to), a_ti, product_oi)
        grad_to += BLOCK_T * grad_position
        activation_ti += BLOCK_T * activation_position
    total = tl.sum(tl.sum(product_oi * product_oi, 1).to(tl.float64), 0)
    tl.store(sq_norm + program, total)
