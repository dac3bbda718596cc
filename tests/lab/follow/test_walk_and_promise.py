"""A path whose settings change on the way, and how much of a promised fall has come."""

import math

import pytest

from noisescale_lab.follow.walk import Span, Stretch, kept_promise, path_at


def at(stretches, *, batch=32.0, rate=1.0, optimizer="SGD"):
    return path_at(
        stretches, sq_distance=9.0, momentum=0.5, optimizer=optimizer, batch=batch, rate_factor=rate, variance=0.25
    )


def test_a_path_of_one_setting_is_what_was_measured():
    path = at([Stretch(10, 32, 1.0, 4.0, 64.0, 1.0)])

    assert path[:5] == (10, 4.0, 0.25, 9.0, 0.5)


def test_updates_count_as_if_the_present_rate_had_held_from_the_start():
    path = at([Stretch(10, 32, 1.0, 4.0), Stretch(5, 32, 2.0, 8.0)], rate=2.0)

    assert path.num_updates == 15
    assert path.sum_sq_norm == pytest.approx(4 * 4 + 8)
    assert path.variance == pytest.approx(0.25 * (24 / 12) ** 2)


def test_the_noise_of_a_smaller_batch_is_taken_out_for_sgd_alone():
    """|g|² at batch 32 is 1 + 64/32 = 3, at batch 64 it is 2."""
    stretches = [Stretch(10, 32, 1.0, 6.0, 64.0, 1.0)]

    assert at(stretches, batch=64).sum_sq_norm == pytest.approx(4.0)
    assert at(stretches, batch=64, optimizer="Adam").sum_sq_norm == 6.0


def test_a_gradient_that_is_not_seen_leaves_at_least_a_twentieth_of_the_update():
    assert at([Stretch(10, 2, 1.0, 6.0, 64.0, -1.0)], batch=4096).sum_sq_norm == pytest.approx(0.3)


def test_without_updates_there_is_no_path():
    assert at([]) is None


def spans(*losses, promised=1.0, error=0.01):
    return [Span(10, loss, error, promised) for loss in losses]


def test_the_fall_over_the_last_half_is_held_against_what_was_promised_between_the_middles():
    assert kept_promise(spans(9.0, 4.0, 2.0, 1.4)) == pytest.approx(math.log(0.6))


@pytest.mark.parametrize(
    "history",
    [
        [],
        spans(2.0, 1.0),
        spans(9.0, 4.0, 2.0, 1.4, error=1.0),
        spans(9.0, 4.0, 2.0, None),
        spans(9.0, 4.0, 2.0, 1.4, promised=None),
        spans(9.0, 4.0, 2.0, 1.4, promised=-1.0),
        spans(9.0, 4.0, 2.0, math.inf),
    ],
)
def test_nothing_is_said_of_losses_that_say_too_little(history):
    assert kept_promise(history) is None


def test_nothing_is_said_of_a_promise_that_is_hardly_known():
    """In small batches of a language model that of a few looks scatters more than it is."""
    known, unknown = ([Span(10, loss, 0.01, 1.0, sd**2) for loss in (9.0, 4.0, 2.0, 1.4)] for sd in (0.2, 0.3))

    assert kept_promise(known) == pytest.approx(math.log(0.6))
    assert kept_promise(unknown) is None


@pytest.mark.parametrize(("last", "share"), [(5.0, 0.03), (-9.0, 1.2)])
def test_a_share_is_told_between_its_bounds(last, share):
    assert kept_promise(spans(9.0, 4.0, 2.0, last)) == pytest.approx(math.log(share))
