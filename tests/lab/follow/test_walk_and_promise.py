"""A path whose settings change on the way, and how much of a promised fall has come."""

import math

import numpy as np
import pytest

from noisescale_lab.follow.promise import Span, kept_promise
from noisescale_lab.follow.walk import Stretch, path_at, push_at


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


def walked(updates, *, looks=4, rate=1.0):
    """Stretches of a path with these updates, [steps, parameters], and where it began."""
    where, found = np.zeros(updates.shape[1]), []
    for part in np.array_split(updates, looks):
        where = where + part.sum(0)
        found.append(Stretch(len(part), 32, rate, float((part**2).sum()), sq_distance=float(where @ where)))
    return found


def test_the_push_is_that_of_the_updates_of_the_last_half_along_the_path():
    updates = np.random.default_rng(0).normal(size=(40, 3)) + 0.3
    places = np.cumsum(updates, 0) - updates

    push = push_at(walked(updates), optimizer="SGD", batch=32, rate_factor=1.0)

    half = slice(20, 40)
    assert push == pytest.approx(2 * (updates[half] * places[half]).sum() / (updates[half] ** 2).sum())


def test_a_path_that_goes_straight_on_pushes_and_one_that_turns_back_does_not():
    straight, back = np.ones((16, 1)), np.array([[1.0]] * 12 + [[-1.0]] * 4)

    assert push_at(walked(straight), optimizer="SGD", batch=32, rate_factor=1.0) > 1
    assert push_at(walked(back, looks=2), optimizer="SGD", batch=32, rate_factor=1.0) < 0.1


def test_half_the_rate_pushes_twice_as_much():
    """u · (θ - θ_0) goes with the rate, |u|² with its square."""
    path = walked(np.random.default_rng(1).normal(size=(40, 3)) + 0.3)

    now, lower = (push_at(path, optimizer="SGD", batch=32, rate_factor=rate) for rate in (1.0, 0.5))

    assert lower == pytest.approx(2 * now)


@pytest.mark.parametrize("stretches", [[], [Stretch(10, 32, 1.0, 4.0)], [Stretch(10, 32, 1.0, 0.0, sq_distance=0.0)]])
def test_without_distances_or_updates_nobody_knows_the_push(stretches):
    assert push_at(stretches, optimizer="SGD", batch=32, rate_factor=1.0) is None


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


@pytest.mark.parametrize(("last", "share"), [(5.0, 0.03), (-9.0, 1.2)])
def test_a_share_is_told_between_its_bounds(last, share):
    assert kept_promise(spans(9.0, 4.0, 2.0, last)) == pytest.approx(math.log(share))
