"""How sums are cut on each architecture: what nobody has measured is cut as usual, and all settings give right sums."""

import pytest
import torch

from client.kernels.tuned_cases import CASES
from noisescale.kernels.layout import CHUNK
from noisescale.kernels.multi_tensor import launch, tuned
from noisescale.kernels.multi_tensor.tuned import ONE_LIST, TUNED, TWO_LISTS, setting_of
from noisescale.kernels.operations import Operation
from quick import quick_or_slow

pytestmark = pytest.mark.processes

HOPPER = (9, 0)
NOBODY_MEASURED = (7, 5)

QUICK = {"9.0, bf16", "9.0, dots, odd addresses"}

SETTINGS = [ONE_LIST, TWO_LISTS, *(one for settings in TUNED.values() for one in settings.values())]

MOST_TERMS = 32
"""That a lane adds up in fp32: with so many, equal elements are off by less than a millionth."""


@pytest.fixture
def no_device_was_asked():
    tuned.capability_of.cache_clear()
    yield
    tuned.capability_of.cache_clear()


@pytest.mark.parametrize("name", quick_or_slow(CASES, QUICK))
def test_every_setting_of_the_table_gives_the_sums_of_each_tensor_and_group_and_the_total(name, interpreted):
    result = interpreted[name]

    assert result["is by the table"]
    assert not {kind: error for kind, error in result["errors"].items() if not error <= 1e-6}
    assert result["errors"]["num_nonfinite"] == 0
    assert result["is complete"]
    assert result["is repeatable"]
    assert result["is fused"]


@pytest.mark.parametrize("capability", [NOBODY_MEASURED, None], ids=["an unknown architecture", "none of Nvidia's"])
@pytest.mark.parametrize("operation", Operation)
def test_what_nobody_has_measured_is_cut_as_usual(capability, operation):
    usual = TWO_LISTS if operation.has_other else ONE_LIST

    assert {setting_of(capability, operation, size) for size in (2, 4, 8)} == {usual}


def test_an_entry_holds_for_its_own_operation_and_size_of_elements_alone():
    assert setting_of(HOPPER, Operation.SQ_NORMS, 2) == TUNED[HOPPER][Operation.SQ_NORMS, 2] != ONE_LIST
    assert setting_of(HOPPER, Operation.SQ_NORMS, 8) == ONE_LIST
    assert setting_of(HOPPER, Operation.METRIC, 2) == TWO_LISTS


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_setting_cuts_a_chunk_evenly_into_blocks_that_threads_read_16_bytes_at_a_time(setting):
    threads = 32 * setting.num_warps

    assert setting.block & (setting.block - 1) == 0
    assert CHUNK % setting.block == 0
    assert CHUNK // setting.block <= MOST_TERMS
    assert setting.block // threads * 2 >= launch.VECTOR_BYTES  # of elements of 2 bytes
    assert threads <= 1024  # of a program, on any device


def test_a_variant_takes_block_and_warps_from_the_table():
    def variant(capability):
        one = launch.variant_of(
            capability, Operation.SQ_NORMS, torch.bfloat16, torch.bfloat16, has_scale=False, is_aligned=True
        )
        return one.constants["BLOCK"], one.options["num_warps"]

    entry = TUNED[HOPPER][Operation.SQ_NORMS, 2]

    assert variant(HOPPER) == (entry.block, entry.num_warps)
    assert variant(NOBODY_MEASURED) == variant(None) == (ONE_LIST.block, ONE_LIST.num_warps)


@pytest.mark.usefixtures("no_device_was_asked")
def test_a_device_is_asked_once_for_its_architecture(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: asked.append(device) or HOPPER)

    found = {tuned.capability_of(torch.device("cuda", 1)) for _ in range(3)}

    assert found == {HOPPER}
    assert asked == [torch.device("cuda", 1)]
    assert tuned.capability_of(torch.device("cpu")) is None


@pytest.mark.usefixtures("no_device_was_asked")
def test_the_numbers_that_amd_counts_by_are_taken_for_no_architecture_of_the_table(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: HOPPER)
    monkeypatch.setattr(torch.version, "hip", "6.3")

    assert tuned.capability_of(torch.device("cuda", 0)) is None
