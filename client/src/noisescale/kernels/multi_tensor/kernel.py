"""Two Triton kernels: the sums of each chunk, and from those the sums of each tensor, each group, and the total.

`naive.py` says the same in plain PyTorch.

A full block is read without a mask, and the address is known to be a multiple of 16 bytes where it is: only then does
the compiler read 16 bytes at a time. Each of a block's lanes adds up at most CHUNK / BLOCK terms in fp32, whose
rounding errors stay below a millionth even where all are equal; what follows is fp64. No sum depends on which chunk is
done first.

A chunk whose sums are not finite, or so small that squares may have been lost, is read once more in fp64, and its
elements that are not finite are counted. Clean data are read once.
"""

import triton
import triton.language as tl

SQ_NORMS = tl.constexpr(0)
DOTS = tl.constexpr(1)
ACCUMULATE = tl.constexpr(2)
PRECONDITIONED = tl.constexpr(3)
SIGNS = tl.constexpr(4)
METRIC = tl.constexpr(5)

SMALLEST = tl.constexpr(2.0**-86)
"""Sum from which squares below the least normal fp32 number, 2⁻¹²⁶, can be forgotten: 2¹⁶ of them are 2⁻¹¹⁰."""

CAREFUL_BLOCK = tl.constexpr(1024)
"""Few elements a thread: the second reading must not cost the first one registers."""


# Specialised for numbers such as 1 or multiples of 16, there would be a kernel to compile for each list of tensors.
@triton.jit(
    do_not_specialize=["num_tensors", "num_chunks", "first_chunk"],
    do_not_specialize_on_alignment=["first_numbers", "second_numbers", "inverse_scale"],
)
def reduce_chunks(
    table,
    first_numbers,
    second_numbers,
    chunk_tensor,
    chunk_slot,
    chunk_offset,
    inverse_scale,
    partials,
    num_tensors,
    num_chunks,
    first_chunk,
    OPERATION: tl.constexpr,
    FIRST: tl.constexpr,
    OTHER: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    HAS_SCALE: tl.constexpr,
    ALIGNMENT: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a chunk: its sums go to partials [N, C], fp64.

    Args:
        table: Elements, address of x and address of y of each tensor, int64 [3, P], and in row 5 that of z where there
            are three lists; a missing tensor has address 0.
        first_numbers: Of each tensor, fp64 [P]; see `Operation`.
        second_numbers: Of each tensor, fp64 [P].
        chunk_tensor: See `Layout`.
        chunk_slot: See `Layout`.
        chunk_offset: See `Layout`.
        inverse_scale: One number, of any type.
        partials: The sums of each chunk, by slot.
        num_tensors: P.
        num_chunks: C.
        first_chunk: Of this launch.
        OPERATION: What to sum up.
        FIRST: Type of x.
        OTHER: Type of y.
        ACCUMULATOR: Type in which a lane adds up: fp64 where x or y is fp64, else fp32.
        HAS_SCALE: Whether there is an inverse scale.
        ALIGNMENT: Bytes that every address is a multiple of.
        CHUNK: Elements of a chunk.
        BLOCK: Elements that are read at a time.
    """
    HAS_OTHER: tl.constexpr = OPERATION != SQ_NORMS
    chunk = first_chunk + tl.program_id(0)
    tensor = tl.load(chunk_tensor + chunk)
    base = tl.multiple_of(tl.load(chunk_offset + chunk), CHUNK)
    count = tl.minimum(tl.maximum(tl.load(table + tensor) - base, 0), CHUNK).to(tl.int32)
    first_address = tl.load(table + num_tensors + tensor)
    first = tl.multiple_of(first_address.to(tl.pointer_type(FIRST)), ALIGNMENT) + base
    has_first = first_address != 0
    other = first
    has_other = has_first
    if HAS_OTHER:
        other_address = tl.load(table + 2 * num_tensors + tensor)
        other = tl.multiple_of(other_address.to(tl.pointer_type(OTHER)), ALIGNMENT) + base
        has_other = other_address != 0
    third = other
    if OPERATION == METRIC:
        third = tl.multiple_of(tl.load(table + 5 * num_tensors + tensor).to(tl.pointer_type(OTHER)), ALIGNMENT) + base
    scale = tl.full((), 1.0, tl.float64)
    if HAS_SCALE:
        scale = tl.load(inverse_scale).to(tl.float64)
    number_a = scale
    number_b = scale
    if OPERATION == PRECONDITIONED:
        number_a = tl.load(first_numbers + tensor)
        number_b = 1.0 / tl.sqrt(tl.load(second_numbers + tensor))
    if OPERATION == SIGNS or OPERATION == METRIC:  # noqa: SIM109  # Triton knows no `in`
        number_a = tl.load(first_numbers + tensor)
        number_b = tl.load(second_numbers + tensor)

    total_0 = tl.full((), 0.0, tl.float64)
    total_1 = tl.full((), 0.0, tl.float64)
    total_2 = tl.full((), 0.0, tl.float64)
    nonfinite = tl.full((), 0.0, tl.float64)
    is_done = count == 0
    if has_first & has_other & (count > 0):
        total_0, total_1, total_2 = quick_sums(
            first,
            other,
            third,
            count,
            scale.to(ACCUMULATOR),
            number_a.to(ACCUMULATOR),
            number_b.to(ACCUMULATOR),
            OPERATION,
            ACCUMULATOR,
            BLOCK,
        )
        is_done = is_trusted(total_0) & is_trusted(total_1)
        if OPERATION == ACCUMULATE:
            tl.debug_barrier()  # what other threads have just written is read again below
    if (has_first | has_other) & (is_done == 0):
        total_0, total_1, total_2, nonfinite = careful_sums(
            first, other, third, count, has_first, has_other, scale, number_a, number_b, OPERATION
        )

    slot = partials + tl.load(chunk_slot + chunk)
    tl.store(slot, total_0)
    slot += num_chunks
    if OPERATION != SQ_NORMS and OPERATION != PRECONDITIONED:
        tl.store(slot, total_1)
        slot += num_chunks
    if OPERATION == DOTS or OPERATION == SIGNS or OPERATION == METRIC:  # noqa: SIM109
        tl.store(slot, total_2)
        slot += num_chunks
    tl.store(slot, nonfinite)


@triton.jit
def quick_sums(
    first,
    other,
    third,
    count,
    scale,
    number_a,
    number_b,
    OPERATION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The sums of one chunk, whole blocks first, then what is left."""
    lane = tl.arange(0, BLOCK)
    sum_0 = tl.zeros([BLOCK], ACCUMULATOR)
    sum_1 = tl.zeros([BLOCK], ACCUMULATOR)
    sum_2 = tl.zeros([BLOCK], ACCUMULATOR)
    whole = count // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        x = tl.load(first + start + lane).to(ACCUMULATOR)
        y = x
        if OPERATION != SQ_NORMS:
            y = tl.load(other + start + lane).to(ACCUMULATOR)
        if OPERATION == ACCUMULATE:
            y = y + x
            tl.store(other + start + lane, y)
        z = y
        if OPERATION == METRIC:
            z = tl.load(third + start + lane).to(ACCUMULATOR)
        sum_0, sum_1, sum_2 = with_terms(sum_0, sum_1, sum_2, x, y, z, scale, number_a, number_b, OPERATION)
    if whole < count:
        is_left = whole + lane < count
        x = tl.load(first + whole + lane, mask=is_left, other=0.0).to(ACCUMULATOR)
        y = x
        if OPERATION != SQ_NORMS:
            y = tl.load(other + whole + lane, mask=is_left, other=0.0).to(ACCUMULATOR)
        if OPERATION == ACCUMULATE:
            y = y + x
            tl.store(other + whole + lane, y, mask=is_left)
        z = y
        if OPERATION == METRIC:
            z = tl.load(third + whole + lane, mask=is_left, other=0.0).to(ACCUMULATOR)
        sum_0, sum_1, sum_2 = with_terms(sum_0, sum_1, sum_2, x, y, z, scale, number_a, number_b, OPERATION)
    return tl.sum(sum_0.to(tl.float64)), tl.sum(sum_1.to(tl.float64)), tl.sum(sum_2.to(tl.float64))


@triton.jit
def careful_sums(first, other, third, count, has_first, has_other, scale, number_a, number_b, OPERATION: tl.constexpr):
    """The sums of one chunk in fp64, and how many of its elements are NaN or infinite; one list may be missing."""
    lane = tl.arange(0, CAREFUL_BLOCK)
    sum_0 = tl.zeros([CAREFUL_BLOCK], tl.float64)
    sum_1 = tl.zeros([CAREFUL_BLOCK], tl.float64)
    sum_2 = tl.zeros([CAREFUL_BLOCK], tl.float64)
    nonfinite = tl.zeros([CAREFUL_BLOCK], tl.float64)
    first_count = tl.where(has_first, count, 0)
    other_count = tl.where(has_other, count, 0)
    for start in range(0, count, CAREFUL_BLOCK):
        x = tl.load(first + start + lane, mask=start + lane < first_count, other=0.0).to(tl.float64)
        nonfinite += tl.where(tl.abs(x) < float("inf"), 0.0, 1.0)
        y = x
        if OPERATION != SQ_NORMS:
            y = tl.load(other + start + lane, mask=start + lane < other_count, other=0.0).to(tl.float64)
            nonfinite += tl.where(tl.abs(y) < float("inf"), 0.0, 1.0)
        z = y
        if OPERATION == METRIC:  # what is missing beside it is zeros
            z = tl.load(third + start + lane, mask=start + lane < tl.minimum(first_count, other_count), other=0.0)
            z = z.to(tl.float64)
        sum_0, sum_1, sum_2 = with_terms(sum_0, sum_1, sum_2, x, y, z, scale, number_a, number_b, OPERATION)
    return tl.sum(sum_0), tl.sum(sum_1), tl.sum(sum_2), tl.sum(nonfinite)


@triton.jit
def with_terms(sum_0, sum_1, sum_2, x, y, z, scale, number_a, number_b, OPERATION: tl.constexpr):
    """The sums with one block's terms added; those that the operation does not have stay as they are."""
    if OPERATION == PRECONDITIONED:
        quotient = x * scale / (tl.sqrt(y) * number_b + number_a)
        quotient = tl.where(y == 0, x * 0, quotient)  # not 0: a NaN stays one
        sum_0 += quotient * quotient
    elif OPERATION == METRIC:
        x = x * scale
        quotient = x / (tl.sqrt(y) * number_b + number_a)
        quotient = tl.where(y == 0, x * 0, quotient)  # not 0: a NaN stays one
        sum_0 += x * x
        sum_1 += x * quotient
        sum_2 += z * quotient
    elif OPERATION == SIGNS:
        a = x * number_a
        b = y * number_b
        sum_0 += tl.abs(a - b)
        sum_1 += (tl.abs(a) + tl.abs(b)) * 0.5
        signed_b = tl.where(a > 0, b, tl.where(a < 0, -b, a * b))
        signed_a = tl.where(b > 0, a, tl.where(b < 0, -a, a * b))
        sum_2 += (signed_a + signed_b) * 0.5
    else:
        x = x * scale
        sum_0 += x * x
        if OPERATION != SQ_NORMS:
            y = y * scale
            sum_1 += y * y
        if OPERATION == DOTS:
            sum_2 += x * y
    return sum_0, sum_1, sum_2


@triton.jit
def is_trusted(total):
    """Whether a sum of squares in fp32 has lost nothing; 0 is taken for what it seems to be."""
    return ((total >= SMALLEST) & (total < float("inf"))) | (total == 0)


@triton.jit(do_not_specialize=["num_chunks", "num_segments"])
def sum_segments(partials, segment_low, segment_high, sums, num_chunks, num_segments, BLOCK: tl.constexpr):
    """One program a segment and kind of sum: sums [N, S] of the partials between low and high, fp64.

    Args:
        partials: From `reduce_chunks`.
        segment_low: See `Layout`.
        segment_high: See `Layout`.
        sums: The result.
        num_chunks: C.
        num_segments: S.
        BLOCK: Partials that are read at a time.
    """
    segment = tl.program_id(0)
    kind = tl.program_id(1)
    low = tl.load(segment_low + segment)
    high = tl.load(segment_high + segment)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float64)
    row = partials + kind.to(tl.int64) * num_chunks
    for start in range(low, high, BLOCK):
        total += tl.load(row + start + lane, mask=start + lane < high, other=0.0)
    tl.store(sums + kind * num_segments + segment, tl.sum(total))
