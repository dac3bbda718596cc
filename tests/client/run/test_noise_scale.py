import random

import pytest

from client_runs import make_kept_run
from noisescale.estimators.noise_scale import Terms
from noisescale.recent_updates import RecentUpdates, readable


def recent(num_updates, *, trace_cov=1000.0, grad_sq_norm=1.0, noise=0.1):
    generator = random.Random(0)
    updates = RecentUpdates()
    for _ in range(num_updates):
        updates.add(Terms(trace_cov * generator.gauss(1, noise), grad_sq_norm * generator.gauss(1, noise)))
    return updates


@pytest.mark.parametrize(
    ("num_updates", "in_window", "num_blocks"),
    [(0, 0, 0), (3, 3, 3), (8, 8, 8), (100, 8, 8), (200, 10, 10), (1000, 50, 16), (20_000, 256, 16)],
)
def test_the_window_is_the_last_twentieth_but_eight_updates_at_least(num_updates, in_window, num_blocks):
    estimate = recent(num_updates).estimate()

    assert (estimate.num_updates, estimate.num_blocks) == (in_window, num_blocks)


def test_a_window_forgets_what_lies_before_it():
    updates = recent(100, trace_cov=1.0)

    for _ in range(8):
        updates.add(Terms(4000.0, 2.0))

    assert updates.estimate().value == pytest.approx(2000)


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
    assert " sequences, about " in text
    assert text.endswith(" more steps")
    assert run.noise_scale().value is None


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
