"""One pass over a flat tensor gives the sums of what is packed into it."""

import pytest
import torch

from noisescale.kernels.squared_norms import FlatSegments


def flat_of(parts, num_ranks, dtype):
    """As FSDP packs gradients: for each rank in turn its piece of each, filled up with zeros."""
    pieces = [list(part.chunk(num_ranks)) for part in parts]
    longest = [max(piece.numel() for piece in of_part) for of_part in pieces]
    rows = []
    for rank in range(num_ranks):
        for of_part, length in zip(pieces, longest, strict=True):
            piece = of_part[rank] if rank < len(of_part) else of_part[0][:0]
            rows.append(torch.nn.functional.pad(piece, (0, length - piece.numel())))
    return torch.cat(rows).to(dtype), longest * num_ranks


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_ranks", [1, 2, 3])
def test_segments_in_pieces_are_summed_as_if_each_were_whole(dtype, num_ranks):
    torch.manual_seed(0)
    parts = [torch.randn(size).to(dtype) for size in (70_001, 5, 1, 9000)]
    flat, lengths = flat_of(parts, num_ranks, dtype)
    segments = FlatSegments(lengths, [0, 1, -1, 2] * num_ranks, 3, dtype=dtype, device="cpu")

    found = segments.sq_norms(flat)

    expected = [float(parts[i].double().square().sum()) for i in (0, 1, 3)]
    assert found.tolist() == pytest.approx(expected, rel=1e-6)
    assert found.dtype == torch.float64


def test_a_tensor_of_another_length_is_refused():
    segments = FlatSegments([3, 4], [0, 0], 1, dtype=torch.float32, device="cpu")

    with pytest.raises(ValueError, match="must have 7 elements, got 8"):
        segments.sq_norms(torch.zeros(8))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu_the_sums_are_the_same_and_nobody_waits(dtype):
    torch.manual_seed(0)
    parts = [torch.randn(size).to(dtype) for size in (70_001, 5, 1, 9000)]
    flat, lengths = flat_of(parts, 8, dtype)
    segments = FlatSegments(lengths, [0, 1, -1, 2] * 8, 3, dtype=dtype, device="cuda")
    on_device = flat.cuda()
    segments.sq_norms(on_device)

    torch.cuda.set_sync_debug_mode("error")
    try:
        found = segments.sq_norms(on_device)
    finally:
        torch.cuda.set_sync_debug_mode("default")

    expected = [float(parts[i].double().square().sum()) for i in (0, 1, 3)]
    assert found.tolist() == pytest.approx(expected, rel=1e-6)
