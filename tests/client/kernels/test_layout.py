"""Chunks, slots and segments, checked by walking through them."""

import pytest
import torch

from noisescale.kernels.layout import CHUNK, layout_of

SIZES = (0, CHUNK + 1, 5, 3 * CHUNK, 1, 0, CHUNK)
DTYPES = (torch.float32, torch.bfloat16, torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float32)
GROUPS = (0, 1, 0, -1, 0, 2, 1)


@pytest.fixture
def layout():
    return layout_of(SIZES, DTYPES, GROUPS, 4)


def slots_of(layout, segment):
    return set(range(int(layout.segment_low[segment]), int(layout.segment_high[segment])))


def test_the_chunks_of_a_tensor_cover_it_once(layout):
    for index, size in enumerate(SIZES):
        offsets = layout.chunk_offset[layout.chunk_tensor == index].tolist()

        assert offsets == list(range(0, size, CHUNK))


def test_every_chunk_has_a_slot_of_its_own(layout):
    assert sorted(layout.chunk_slot.tolist()) == list(range(layout.num_chunks))


def test_the_slots_of_a_tensor_are_its_segment(layout):
    for index in range(len(SIZES)):
        slots = set(layout.chunk_slot[layout.chunk_tensor == index].tolist())

        assert slots == slots_of(layout, index)


def test_a_group_is_one_segment_though_its_tensors_differ_in_type(layout):
    for group in range(4):
        members = [slots_of(layout, index) for index, g in enumerate(GROUPS) if g == group]

        assert slots_of(layout, len(SIZES) + group) == set().union(*members)


def test_the_last_segment_is_everything(layout):
    assert slots_of(layout, layout.num_segments - 1) == set(range(layout.num_chunks))
    assert layout.num_segments == len(SIZES) + 4 + 1


def test_each_type_is_one_launch_of_consecutive_chunks(layout):
    assert [launch.dtype for launch in layout.launches] == [torch.float32, torch.bfloat16, torch.float16]
    for launch in layout.launches:
        chunks = layout.chunk_tensor[launch.first_chunk : launch.first_chunk + launch.num_chunks].tolist()

        assert {DTYPES[index] for index in chunks} <= {launch.dtype}
        assert sorted(launch.indices) == [index for index, dtype in enumerate(DTYPES) if dtype == launch.dtype]
    assert sum(launch.num_chunks for launch in layout.launches) == layout.num_chunks


def test_offsets_beyond_two_to_the_31_are_counted():
    layout = layout_of([5_000_000_000], [torch.bfloat16])

    assert layout.num_chunks == -(-5_000_000_000 // CHUNK)
    assert int(layout.chunk_offset[-1]) == (layout.num_chunks - 1) * CHUNK
