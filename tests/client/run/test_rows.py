"""A row of one update is what the sums over updates make of it."""

import pytest

from noisescale.rows.recording import RowSoFar, row_of
from noisescale.rows.updates import LoggedStep, Update
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.noise_scale import Terms

LOGGED = LoggedStep(7, 1.75e9, 0.1, 448)


@pytest.mark.parametrize(
    "update",
    [
        Update(LOGGED, 8, 8.0, 64.0, Terms(18.3, -0.7), None, 0.5, 0),
        Update(LOGGED, 8, 8.0, 64.0, Terms(18.3, 0.7), None, None, Flags.NONFINITE_LOSS),
        Update(LOGGED, 0, None, None, None, None, 0.5, Flags.NO_BACKWARD | Flags.BATCH_SIZE_UNKNOWN),
    ],
)
def test_a_row_of_one_update_equals_the_sums_over_it(update: Update) -> None:
    sums = RowSoFar()
    sums.add(update)

    assert row_of(update) == sums.row(update)
    assert [type(value) for value in row_of(update)] == [type(value) for value in sums.row(update)]
