import random

import pytest

from client_runs import make_kept_run
from noisescale.notices.readable import readable, readable_seconds
from noisescale.window.recent_updates import NoiseScale, RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.uncertainty import Reason, State


def recent(num_updates, *, trace_cov=1000.0, grad_sq_norm=1.0, noise=0.1):
    generator = random.Random(0)
    updates = RecentUpdates()
    for _ in range(num_updates):
        updates.add(Terms(trace_cov * generator.gauss(1, noise), grad_sq_norm * generator.gauss(1, noise)))
    return updates


@pytest.mark.parametrize(
    ("num_updates", "in_window", "num_blocks"),
    [
        (0, 0, 0),
        (3, 3, 3),
        (8, 8, 8),
        (100, 16, 16),
        (640, 32, 32),
        (641, 33, 17),
        (1000, 50, 25),
        (20_000, 1024, 32),
    ],
)
def test_the_window_is_the_last_twentieth_but_sixteen_updates_at_least(num_updates, in_window, num_blocks):
    estimate = recent(num_updates).estimate()

    assert (estimate.num_updates, estimate.num_blocks) == (in_window, num_blocks)


@pytest.mark.parametrize("num_updates", [37, 641, 1283, 7777])
def test_the_sums_of_a_window_and_of_four_before_it_are_those_of_their_updates(num_updates):
    generator = random.Random(4)
    terms = [Terms(generator.gauss(1000, 300), generator.gauss(1, 0.7)) for _ in range(num_updates)]
    updates = RecentUpdates()
    for one in terms:
        updates.add(one)

    estimate = updates.estimate()

    window = terms[-estimate.num_updates :]
    assert estimate.num_updates >= num_updates / 20
    assert estimate.trace_cov == pytest.approx(sum(t.trace_cov for t in window) / len(window))
    assert estimate.grad_sq_norm == pytest.approx(sum(t.grad_sq_norm for t in window) / len(window))


def test_a_window_forgets_what_lies_before_it():
    updates = recent(100, trace_cov=1.0)

    for _ in range(16):
        updates.add(Terms(4000.0, 2.0))

    assert updates.estimate().value == pytest.approx(2000)


def test_a_long_run_keeps_few_blocks():
    updates = recent(40_000)

    assert len(updates._blocks) <= 170


def test_the_first_windows_are_tentative_and_the_windows_before_resolve_one():
    assert recent(16, noise=0.3).estimate().state is State.TENTATIVE
    assert recent(40, noise=0.3).estimate().state is State.RESOLVED


def test_without_a_gradient_there_is_no_number_and_one_huge_value_hides_none_that_was_there():
    nothing = recent(300, grad_sq_norm=0.0)
    generator = random.Random(5)
    for _ in range(60):  # a lucky stretch of pure noise
        nothing.add(Terms(1000 * generator.gauss(1, 0.1), generator.gauss(0, 1)))
    found = recent(300)
    found.add(Terms(1e9, 1e12))

    assert not nothing.has_signal
    assert found.has_signal


def log_terms(run, num_updates, *, trace_cov, grad_sq_norm, noise):
    generator = random.Random(1)
    for _ in range(num_updates):
        x, y = trace_cov * generator.gauss(1, 0.05), grad_sq_norm * generator.gauss(1, noise)
        run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=y + x / 8, big_sq_norm=y + x / 64)


def test_a_resolved_noise_scale_reads_as_a_sentence():
    run, _ = make_kept_run(example="sequence", unit="tokens", units_per_example=1024)

    log_terms(run, 400, trace_cov=3180.0, grad_sq_norm=1.0, noise=0.2)

    text = str(run.noise_scale())
    value, rest = text.split(" sequences [")
    assert 2800 < float(value) < 3600
    assert " M tokens, z = " in rest
    assert text.endswith(", resolved")


def test_an_unresolved_one_has_a_bound_and_says_how_long_it_takes():
    run, _ = make_kept_run(example="sequence")

    log_terms(run, 400, trace_cov=3180.0, grad_sq_norm=1.0, noise=6.0)

    text = str(run.noise_scale())
    assert text.startswith("not resolved yet: > ")
    assert " sequences, resolved after at least " in text
    assert text.endswith(" more steps")
    assert run.noise_scale().value is None


def test_small_batches_with_the_same_data_are_said_to_be_and_no_wait_is_promised():
    run, _ = make_kept_run()

    log_terms(run, 400, trace_cov=-5.0, grad_sq_norm=1.0, noise=0.05)

    assert str(run.noise_scale()) == ("not resolved yet: tr Σ is not positive: small batches may hold the same data")


def test_a_signal_that_is_not_above_zero_is_said_in_words():
    run, _ = make_kept_run()

    log_terms(run, 400, trace_cov=100.0, grad_sq_norm=-1.0, noise=0.1)

    assert "the signal |G|² is not above zero" in str(run.noise_scale())
    assert "_" not in str(run.noise_scale())


def test_the_first_updates_are_counted_down():
    run, _ = make_kept_run()

    log_terms(run, 3, trace_cov=100.0, grad_sq_norm=1.0, noise=0.1)

    assert str(run.noise_scale()) == "not resolved yet: 3 of 8 updates"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (7.254, "7.25"),
        (72.54, "72.5"),
        (3178.0, "3180"),
        (0.0532, "0.053"),
        (3.25e6, "3.2 M"),
        (1.5e10, "15.0 G"),
        (0, "0"),
    ],
)
def test_counts_are_short(count, text):
    assert readable(count) == text


@pytest.mark.parametrize(
    ("values", "z"),
    [
        ([1.0, 1.5, 0.7, 1.2, 0.9, 1.4, 0.8, 1.1], 10.5),
        ([0.3, 0.5, 9.0, 0.4, 0.2, 0.6, -0.1, 0.5] + 7 * [1.0, 0.2], 5.6),
    ],
    ids=["far from 0 in 8 updates", "21 of 22 are positive"],
)
def test_a_gradient_that_shows_but_not_for_sure_is_not_denied(values, z):
    updates = RecentUpdates()
    for value in values:
        updates.add(Terms(100.0 + value, value))

    found = NoiseScale(updates.estimate(), len(values))

    assert found.estimate.reason == Reason.NO_SIGNAL_YET
    assert found.estimate.z == pytest.approx(z, rel=0.1)
    assert "too few measured steps to be sure of a gradient" in str(found)
    assert "no gradient" not in str(found)


def with_weak_gradient(noise):
    generator = random.Random(2)
    updates = RecentUpdates()
    for _ in range(400):
        updates.add(Terms(1000.0 * generator.gauss(1, 0.05), generator.gauss(1, noise)))
    return updates.estimate()


def test_the_time_to_wait_is_said_where_the_length_of_a_step_is_known():
    text = str(NoiseScale(with_weak_gradient(noise=6), 400, steps_per_update=10, seconds_per_step=5.0))

    steps, time = text.split("at least ")[1].split(" more steps (")
    assert time.endswith("hours)")
    assert float(time.removesuffix(" hours)")) == pytest.approx(float(steps) * 5.0 / 3600, rel=0.05)


def test_a_tentative_one_says_how_long_it_takes_at_least():
    text = str(NoiseScale(with_weak_gradient(noise=4), 400, seconds_per_step=20.0))

    assert ", tentative: resolved after at least " in text
    assert text.endswith("minutes)")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 second"), (40, "40 seconds"), (720, "12.0 minutes"), (5400, "1.5 hours"), (1e6, "11.6 days")],
)
def test_times_are_said_in_their_largest_unit(seconds, text):
    assert readable_seconds(seconds) == text
