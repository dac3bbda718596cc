"""What a run's path read at the shares of its plan, and under which schedule."""

from types import SimpleNamespace

from noisescale_core.estimators.path import Path, Push
from noisescale_server.services.calibration.known_rates import readings_of
from noisescale_server.services.learning_rate import Moment


def run(**changes):
    return SimpleNamespace(optimizer="AdamW", planned_steps=1000, finish_status="finished", latest_step=999, **changes)


def moment(step, schedule="constant", *, push=0.2):
    return Moment(
        step, 0.1, Path(step, 1.0 * step, 0.0, 2.0 * step, 0.9, None if push is None else Push(push, 0.01)), schedule
    )


def test_each_share_of_the_plan_has_the_reading_and_the_schedule_of_its_time():
    moments = [moment(step, "constant" if step < 800 else "unknown") for step in range(10, 1001, 10)]

    family, schedules, ratios, pushes = readings_of(run(), moments)

    assert family == "Adam"
    assert schedules == ["constant", "constant", "constant", "unknown"]
    assert None not in [*ratios, *pushes]


def test_a_share_without_a_moment_near_has_no_reading():
    found = readings_of(run(), [moment(500, push=None), moment(1000)])

    assert found is not None
    _, _, ratios, pushes = found
    assert [one is None for one in ratios] == [True, True, False, False]
    assert [one is None for one in pushes] == [True, True, True, False]


def test_a_path_that_was_measured_at_none_of_them_says_nothing():
    assert readings_of(run(), [moment(700)]) is None
    assert readings_of(run(), []) is None
    assert readings_of(SimpleNamespace(**(vars(run()) | {"optimizer": "Lion"})), [moment(500)]) is None
