"""Every step is in one look, cut by its number alone, so that a job and a server cut alike."""

import random
from itertools import pairwise

import pytest

from noisescale_core.estimators.looks import Look, Looks, look_of, steps_of
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.signal import octave_of
from noisescale_core.estimators.signal import steps_of as steps_of_octave

FAR = [2**20, 2**31 - 1, 2**31, 10**12]


def filled(steps, looks=None):
    """Looks with an update at each of the steps: its number as tr Σ, half of it as |G|², a batch of 32."""
    looks = looks or Looks()
    for step in steps:
        looks.add(step, Terms(trace_cov=float(step), grad_sq_norm=step / 2), 32.0, None)
    return looks


def test_looks_follow_each_other_without_a_gap_or_an_overlap():
    ends = [steps_of(look) for look in range(200)]

    assert ends[0][0] == 0
    assert all(after[0] == before[1] + 1 for before, after in pairwise(ends))


def test_a_step_is_in_the_look_whose_steps_hold_it():
    for step in [*range(3000), *FAR]:
        first, last = steps_of(look_of(step))

        assert first <= step <= last


def test_all_steps_of_a_look_name_it():
    for look in range(120):
        first, last = steps_of(look)

        assert [look_of(step) for step in (first, (first + last) // 2, last)] == [look] * 3


@pytest.mark.parametrize(
    ("look", "steps"), [(0, (0, 7)), (7, (56, 63)), (8, (64, 71)), (15, (120, 127)), (16, (128, 143)), (24, (256, 287))]
)
def test_looks_are_of_eight_steps_at_first_and_then_an_eighth_of_a_doubling(look, steps):
    assert steps_of(look) == steps


def test_a_look_is_a_sixteenth_to_an_eighth_of_the_steps_before_it():
    for step in [*range(64, 3000), *FAR]:
        first, last = steps_of(look_of(step))

        assert 1 / 16 < (last - first + 1) / first <= 1 / 8


def test_a_look_lies_within_one_octave_and_is_a_bucket_of_a_power_of_two():
    for look in range(200):
        first, last = steps_of(look)
        length = last - first + 1

        low, high = steps_of_octave(octave_of(first))
        assert low <= first <= last <= high
        assert (length & (length - 1), first % length) == (0, 0)


def test_a_look_holds_the_sums_over_its_updates():
    source = random.Random(3)
    updates = [(source.uniform(1, 9), source.gauss(0, 2), source.choice([16.0, 32.0])) for _ in range(8)]
    looks = Looks()

    for step, (x, y, batch) in enumerate(updates, start=64):
        looks.add(step, Terms(x, y), batch, 0.1 + step)

    (found,) = looks.so_far()
    assert found[:8] == pytest.approx(
        (
            8,
            sum(x for x, _, _ in updates),
            sum(y for _, y, _ in updates),
            sum(x * x for x, _, _ in updates),
            sum(y * y for _, y, _ in updates),
            sum(x * y for x, y, _ in updates),
            sum(batch for _, _, batch in updates),
            8,
        )
    )
    assert found.learning_rate == 0.1 + 71


def test_updates_are_shared_out_among_the_looks_of_their_steps():
    found = filled(range(40, 200)).so_far()

    # 11 of 8 steps up to 127, 4 of 16 up to 191, and half of the next one
    assert [look.num_updates for look in found] == [8] * 11 + [16] * 4 + [8]
    assert sum(look.trace_cov for look in found) == sum(range(40, 200))
    assert [look.examples for look in found] == [32 * look.num_updates for look in found]


def test_steps_without_an_estimate_are_left_out_of_their_look():
    found = filled(step for step in range(128, 160) if step % 4 == 0).so_far()

    assert [look.num_updates for look in found] == [4, 4]


def test_a_learning_rate_that_is_not_logged_leaves_the_one_before():
    looks = Looks()
    for step, rate in ((0, None), (1, 0.3), (2, 0.2), (3, None), (8, None)):
        looks.add(step, Terms(1.0, 1.0), 32.0, rate)

    assert [look.learning_rate for look in looks.so_far()] == [0.2, None]


@pytest.mark.parametrize("back_to", [16, 66], ids=["an earlier look", "the same look"])
def test_a_step_that_goes_back_after_a_restart_begins_a_look_of_its_own(back_to):
    found = filled([back_to, back_to + 1], filled(range(60, 70))).so_far()

    assert [look.num_updates for look in found] == [4, 6, 2]
    assert found[-1].trace_cov == 2 * back_to + 1


def test_no_update_is_no_look():
    assert Looks().so_far() == []
    assert Look() == (0, 0, 0, 0, 0, 0, 0, 0, None)
