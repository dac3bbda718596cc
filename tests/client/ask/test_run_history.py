import random

import pytest

from noisescale.rows.updates import LoggedStep, Update
from noisescale.window.recent_updates import RecentUpdates
from noisescale.window.run_history import MAX_POINTS, MAX_STRETCHES, RunHistory
from noisescale_core.estimators.noise_scale import Terms


def make_update(step, *, terms=None, batch=64.0, flags=0):
    return Update(LoggedStep(step, 1000.0 + 2 * step, 0.1), 8, 8.0, batch, terms, None, 1.0, flags)


def make_history(num_updates, *, batch_of=lambda step: 64.0, flags_of=lambda step: 0):
    generator = random.Random(3)
    history = RunHistory()
    for step in range(num_updates):
        terms = Terms(1000 * generator.gauss(1, 0.1), generator.gauss(1, 0.3))
        history.add(make_update(step, terms=terms, batch=batch_of(step), flags=flags_of(step)))
    return history


@pytest.mark.parametrize("num_updates", [0, 1, 99, 640, 641, 1281, 5000])
def test_every_example_is_counted_once_however_long_the_run(num_updates):
    history = make_history(num_updates, batch_of=lambda step: 64.0 if step < 100 else 256.0)

    moments = list(history.moments(has_signal=True))

    truth = sum(64 if step < 100 else 256 for step in range(num_updates))
    assert sum(moment.examples for moment in moments) == truth
    assert len(moments) <= MAX_POINTS
    assert len(history._stretches) <= MAX_STRETCHES


@pytest.mark.parametrize("num_updates", [40, 640, 1281, 5000])
def test_the_last_moment_has_the_noise_scale_of_the_latest_window(num_updates):
    generator = random.Random(5)
    history, recent = RunHistory(), RecentUpdates()
    for step in range(num_updates):
        terms = Terms(1000 * generator.gauss(1, 0.1), generator.gauss(1, 0.3))
        history.add(make_update(step, terms=terms))
        recent.add(terms)

    *_, last = history.moments(has_signal=recent.has_signal)

    now = recent.estimate()
    assert (last.noise_scale.value, last.noise_scale.low) == (pytest.approx(now.value), pytest.approx(now.low))


def test_the_batch_of_a_moment_is_the_mean_of_its_own_steps():
    history = make_history(400, batch_of=lambda step: 64.0 if step < 200 else 256.0)

    batches = [moment.batch_size for moment in history.moments(has_signal=True)]

    assert batches == [64.0] * 50 + [256.0] * 50


def test_steps_of_unknown_size_are_not_guessed():
    history = make_history(10, batch_of=lambda step: None if step < 5 else 32.0)

    moments = list(history.moments(has_signal=True))

    assert sum(moment.examples for moment in moments) == 5 * 32
    assert moments[0].batch_size is None


def test_flags_are_those_of_the_latest_window_alone():
    history = make_history(1000, flags_of=lambda step: 128 if step < 900 else 2048 if step == 960 else 0)

    assert history.flags == 2048


def test_flags_outlive_the_doubling_of_stretches():
    assert make_history(650, flags_of=lambda step: 2048 if step == 639 else 0).flags == 2048


def test_the_time_counts_the_first_step_as_an_average_one():
    assert make_history(11).seconds == pytest.approx(22.0)
    assert make_history(1).seconds is None


def test_steps_between_the_measured_ones_and_their_time_are_counted():
    history = RunHistory()
    for step in range(0, 100, 10):
        history.add(make_update(step))

    first, *others = history.moments(has_signal=True)

    assert (first.num_steps, first.seconds) == (1, None)
    assert {(moment.num_steps, moment.seconds) for moment in others} == {(10, 20.0)}


@pytest.mark.slow
@pytest.mark.thorough
def test_a_moment_is_resolved_by_the_windows_before_it_as_the_latest_window_is():
    generator = random.Random(5)
    history, recent = RunHistory(), RecentUpdates()
    states = []
    for step in range(300):
        terms = Terms(1000 * generator.gauss(1, 0.1), generator.gauss(1, 0.5))
        history.add(make_update(step, terms=terms))
        recent.add(terms)
        *_, last = history.moments(has_signal=recent.has_signal)
        states.append((last.noise_scale.state, recent.estimate().state))

    assert all(one == other for one, other in states)
    assert {str(one) for one, _ in states} == {"unresolved", "tentative", "resolved"}
