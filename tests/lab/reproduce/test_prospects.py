"""A recommendation half-way is compared with the answer that a sweep gave, which it never sees."""

import math
from dataclasses import replace

import pytest

from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.advice.evidence.kappa import UNCALIBRATED, Kappa
from noisescale_core.estimators.uncertainty import State
from noisescale_lab.reproduce.advice.glimpses import Glimpse
from noisescale_lab.reproduce.advice.prospects import kappa_elsewhere, known, prospect
from noisescale_lab.reproduce.advice.run import Start
from noisescale_lab.reproduce.advice.sweep import Reference, Tuned

NOTHING = RecentUpdates().estimate()
REFERENCE = Reference("digits_softmax", 0.4, (Tuned(64, 0.8, 100.0),), 50.0, 64.0)
SURE = Kappa(log_mean=math.log(2), log_sd=0.05, measurements=5, said="Known well.")


def glimpse(batch: int) -> Glimpse:
    return Glimpse(Start(1, 1, 5), 0.5, batch, NOTHING, NOTHING, None, 32.0, 32.0)


def test_nothing_is_decided_where_nothing_was_measured_and_the_batch_is_kept():
    said = prospect(glimpse(512), NOTHING, REFERENCE, UNCALIBRATED)

    assert not said.is_shown
    assert (said.decision, said.is_right, said.holds, said.recommended) == ("insufficient_evidence", None, None, None)
    assert said.followed == said.kept == pytest.approx(100 * ((2 + 8 + 1 / 8) / 4 - 1))


@pytest.mark.parametrize(("batch", "decision"), [(8, "increase"), (64, "keep"), (512, "decrease")])
def test_a_noise_scale_times_kappa_finds_the_batch_and_following_it_costs_nothing_more(batch, decision):
    said = prospect(glimpse(batch), known(32.0, NOTHING), REFERENCE, SURE)

    assert (said.decision, said.is_right, said.holds) == (decision, True, True)
    # κ of a run's average, a quarter of the plan done
    assert said.log_error == pytest.approx(0.46 - 0.5, abs=0.03)
    assert said.followed == pytest.approx(0, abs=0.1)


def test_a_wrong_kappa_decides_for_the_wrong_side_and_its_interval_does_not_hold():
    said = prospect(glimpse(64), known(32.0, NOTHING), REFERENCE, replace(SURE, log_mean=math.log(200)))

    assert (said.decision, said.holds) == ("increase", False)
    assert said.is_right is False
    assert said.log_error == pytest.approx(math.log(100), abs=0.06)
    assert said.followed == said.recommended > said.kept


def test_what_is_known_without_error_is_resolved_and_what_is_not_known_stays_as_it_was():
    assert known(None, NOTHING) is NOTHING
    assert known(32.0, NOTHING).state is State.RESOLVED
    assert known(32.0, NOTHING).low == known(32.0, NOTHING).high == 32.0


def test_kappa_of_other_tasks_leaves_the_task_out_and_spreads_between_and_within_tasks():
    values = {"a": [100.0], "b": [1.0, 1.0], "c": [2.0, 2.0], "d": [3.0, 3.0]}

    between = kappa_elsewhere("a", values, "said")
    both = kappa_elsewhere("a", values | {"d": [1.0, 5.0]}, "said")

    assert between.log_mean == pytest.approx(2.0)
    assert between.measurements == 3
    # three means of standard deviation 1, and Student's t with two degrees of freedom
    assert between.log_sd == pytest.approx(math.sqrt(4 / 3) * 4.3027 / 1.96, rel=1e-3)
    assert both.log_sd == pytest.approx(math.sqrt(4 / 3 + 4 / 3) * 4.3027 / 1.96, rel=1e-3)
