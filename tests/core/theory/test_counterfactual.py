import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import schedule, what_if
from noisescale_core.theory.schedule import Stretch
from noisescale_core.theory.what_if import LoggedPiece

piece = st.builds(LoggedPiece, num_steps=st.floats(1, 1e4), batch=st.floats(1, 1e4), noise_scale=st.floats(1, 1e5))
runs = st.lists(piece, min_size=1, max_size=10)


def train_on_a_quadratic(batch_at, num_steps, noise_scale_at=lambda loss: 20 / math.sqrt(loss)):
    """Best possible SGD on a valley whose noise scale depends on the loss: log of (steps, batch, φ), and the loss."""
    log_loss, log = 0.0, []
    for step in range(num_steps):
        batch, noise_scale = batch_at(step), noise_scale_at(math.exp(log_loss))
        log.append(LoggedPiece(1, batch, noise_scale))
        log_loss -= 0.002 / (1 + noise_scale / batch)
    return log, log_loss


def test_what_another_batch_would_have_taken_is_what_it_takes():
    """Train, ask for another batch, then train with that: the same loss after as many steps as foretold."""
    log, reached = train_on_a_quadratic(lambda step: 64 if step < 500 else 256, 2000)

    foretold = what_if.had_we_used(log, batch=100)

    num_steps = round(foretold.steps.value)
    _, in_truth = train_on_a_quadratic(lambda step: 100, num_steps)
    assert in_truth == pytest.approx(reached, rel=2e-3)
    assert foretold.examples.value == pytest.approx(100 * foretold.steps.value)


@given(run=runs, batch=st.floats(1, 1e5))
def test_the_counterfactual_lies_on_the_trade_off_of_the_run(run, batch):
    so_far = schedule.trade_off_of([Stretch(p.ideal_steps, p.noise_scale) for p in run], target="what it achieved")

    found = what_if.had_we_used(run, batch=batch)

    assert found.steps.value == pytest.approx(so_far.steps(batch))
    assert found.examples.value == pytest.approx(so_far.examples(batch))


@given(num_steps=st.floats(1, 1e5), batch=st.floats(1, 1e5), noise_scale=st.floats(1, 1e5))
def test_a_run_at_a_constant_batch_would_have_taken_what_it_took(num_steps, batch, noise_scale):
    found = what_if.had_we_used([LoggedPiece(num_steps, batch, noise_scale)], batch=batch)

    assert found.steps.value == pytest.approx(num_steps)
    assert found.examples.low == pytest.approx(num_steps * batch)
    assert found.examples.high == pytest.approx(num_steps * batch)


@given(run=runs, batch=st.floats(1, 1e5), widths=st.lists(st.floats(1.1, 10), min_size=10, max_size=10))
def test_ends_hold_whatever_noise_scales_inside_the_intervals_give(run, batch, widths):
    with_intervals = [
        LoggedPiece(p.num_steps, p.batch, p.noise_scale, p.noise_scale / w, p.noise_scale * w)
        for p, w in zip(run, widths, strict=False)
    ]
    inside = [
        LoggedPiece(p.num_steps, p.batch, p.low * w ** (i % 3))
        for i, (p, w) in enumerate(zip(with_intervals, widths, strict=False))
    ]

    ends, other = (what_if.had_we_used(each, batch=batch).steps for each in (with_intervals, inside))

    assert ends.low * (1 - 1e-9) <= other.value <= ends.high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: what_if.had_we_used([], batch=8), "pieces must not be empty: give the resolved stretches"),
        (lambda: what_if.had_we_used([LoggedPiece(1, 8, 9)], batch=0), "batch must be positive"),
        (lambda: LoggedPiece(0, 8, 9), "num_steps must be positive and finite, got 0: leave out pieces"),
        (lambda: LoggedPiece(1, 8, 9, low=10), "noise_scale must lie between low and high, got 9 with low=10"),
        (lambda: LoggedPiece(1, 8, 9, high=math.inf), "leave out pieces where it is not bounded"),
    ],
)
def test_a_log_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
