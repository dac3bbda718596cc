"""The table of settings that kernels are cut by says what the file of results says."""

import inspect

import pytest
import torch
from benchmarks.gpu import tuning
from benchmarks.gpu.tuning import Quicker

from benchmarks import results_file
from noisescale.kernels.multi_tensor import tuned
from noisescale.kernels.multi_tensor.tuned import Setting
from noisescale.kernels.operations import Operation

MEASURED_ON = {(9, 0): "gpu_tuning-nvidia-h200"}
"""By architecture, the file that its entries come from."""


def row(operation, dtype, setting, low, high):
    about = tuning.about(tuning.Item(operation, dtype, setting))
    return about | {"ms": (low + high) / 2, "ms_low": low, "ms_high": high}


def test_every_architecture_of_the_table_has_a_file_of_results():
    assert tuned.TUNED.keys() == MEASURED_ON.keys()


@pytest.mark.parametrize("capability", MEASURED_ON)
def test_the_table_has_the_settings_that_its_file_shows_to_be_quicker_and_no_others(capability):
    found = tuning.quicker_settings(results_file.read(MEASURED_ON[capability]))

    assert {key: one.setting for key, one in found.items()} == dict(tuned.TUNED[capability])
    source = inspect.getsource(tuned)
    assert MEASURED_ON[capability] in source
    assert [line for line in tuning.entries(found) if line not in source] == []


def test_a_setting_whose_interval_reaches_into_the_usual_ones_is_not_taken():
    usual = row(Operation.SQ_NORMS, torch.bfloat16, tuned.ONE_LIST, 0.95, 1.05)
    hardly = row(Operation.SQ_NORMS, torch.bfloat16, Setting(2048, 4), 0.9, 0.96)
    clearly = row(Operation.SQ_NORMS, torch.bfloat16, Setting(2048, 8), 0.9, 0.94)

    assert tuning.quicker_settings([usual, hardly]) == {}
    assert tuning.quicker_settings([hardly, clearly]) == {}  # the usual one was not measured
    assert tuning.quicker_settings([usual, hardly, clearly]) == {
        (Operation.SQ_NORMS, 2): Quicker(Setting(2048, 8), pytest.approx(0.92), pytest.approx(1.0))
    }


def test_an_entry_is_printed_as_it_stands_in_the_table():
    [line] = tuning.entries({(Operation.DOTS, 4): Quicker(Setting(4096, 16), 2.0, 2.5)})

    assert line == "(Operation.DOTS, 4): Setting(4096, 16),  # 2.0000 ms for 2.5000: 20.0 % less"


def test_the_usual_settings_are_among_those_that_are_measured():
    assert {tuned.ONE_LIST, tuned.TWO_LISTS} <= set(tuning.SETTINGS)
