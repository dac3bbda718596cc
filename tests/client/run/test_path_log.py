"""The sums over looks: unbiased for updates that were not looked at, with an honest error, and from one start."""

import math
import random
from typing import NamedTuple

import pytest

from noisescale.capture.path.look_plan import LookPlan
from noisescale.capture.path.update_path import Look
from noisescale.track.path_log import PathLog


class FakePath(NamedTuple):
    """Hands looks out and remembers from where it was told to begin again."""

    looks: list
    restarts: list
    promise = None

    def arrived(self):
        found, self.looks[:] = list(self.looks), []
        return found

    def begin_again(self, sketch):
        self.restarts.append(sketch)
        return 1 + len(self.restarts)


def look(number, sq_norm=1.0, sq_distance=1.0, moved_sq=0.0, sq_size=100.0, generation=1, **changes):
    fields = {"momentum": 0.9, "decay": 0.0, "sketch_before": f"before {number}"} | changes
    return Look(number, sq_norm, sq_distance, moved_sq, sq_size, generation=generation, **fields)


def collected(looks, log=None, offset=0):
    log, path = log or PathLog(), FakePath(list(looks), [])
    log.collect(path, lambda number: number + offset)
    return log, path


def places(num_updates):
    plan, found = LookPlan(), []
    while plan.next < num_updates:
        found.append(plan.next)
        plan.advance()
    return found


def test_before_the_first_look_there_is_no_path():
    assert PathLog().path is None
    assert PathLog().take(99) is None


def test_looks_at_every_update_add_up_without_an_error():
    log, _ = collected([look(number, number + 1.0, 5.0 * (number + 1)) for number in range(6)])

    assert log.path[:5] == (6, 21.0, 0.0, 30.0, 0.9)


def test_updates_between_two_looks_count_as_the_mean_of_both():
    log, _ = collected([look(0, 1.0), look(4, 3.0, 9.0)])

    assert log.path.num_updates == 5
    assert log.path.sum_sq_norm == 1 + 3 * 2 + 3
    assert log.path.sq_distance == 9.0


@pytest.mark.parametrize("warm_up", [1, 60])
def test_the_sum_is_unbiased_and_its_stated_error_holds_what_it_is_off(warm_up):
    """|u|² that scatters by 80 % about a mean that warms up as the square of a rate."""
    rng, at = random.Random(1), places(600)
    errors, stated = [], []
    for _ in range(400):
        sq_norms = [min(1.0, (t + 1) / warm_up) ** 2 * rng.lognormvariate(0, 0.7) for t in range(600)]
        path = collected(look(t, sq_norms[t]) for t in at)[0].path
        errors.append(path.sum_sq_norm - math.fsum(sq_norms[: path.num_updates]))
        stated.append(path.variance)

    mean, rms = sum(errors) / len(errors), math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert abs(mean) < 4 * rms / math.sqrt(len(errors))
    assert rms == pytest.approx(math.sqrt(sum(stated) / len(stated)), rel=0.2)


def test_a_part_is_what_has_come_since_the_last_row():
    log, _ = collected([look(0), look(1, sq_distance=2.0)], offset=100)
    first = log.take(105)
    collected([look(5, sq_distance=4.0)], log, offset=100)

    assert first[:2] == (2, 2.0)
    assert (first.sq_distance, first.start, first.momentum) == (2.0, 100, 0.9)
    assert log.take(106) == (4, 4.0, 0.0, 4.0, 100, 0.9, 0, None, None)
    assert log.take(106) is None


def test_a_row_that_is_recorded_late_holds_the_updates_before_its_step_alone():
    log, _ = collected([look(number) for number in range(6)])

    assert log.take(0) is None
    assert log.take(2)[:2] == (2, 2.0)
    assert log.take(3)[:2] == (1, 1.0)
    assert log.take(99)[:2] == (3, 3.0)


def test_of_two_paths_in_one_row_the_later_one_is_told():
    log, _ = collected([look(0), look(1), look(5, moved_sq=1000.0), look(7, 2.0, 3.0, generation=2)])

    assert log.take(99)[:5] == (3, 1 + 1.5 + 2, 1.0, 3.0, 5)


def test_a_change_that_the_updates_cannot_have_made_begins_the_path_again():
    log, path = collected(
        [look(0), look(1), look(5, moved_sq=1000.0), look(6, generation=1), look(7, 2.0, 3.0, generation=2)]
    )

    assert path.restarts == ["before 5"]
    assert log.start == 5
    assert log.path[:5] == (3, 4.0, 0.0, 3.0, 0.9)


def test_a_restart_has_no_path_until_a_distance_from_there_is_known():
    log, _ = collected([look(0), look(1), look(5, moved_sq=1000.0), look(6, generation=1)])

    assert log.path is None
    assert log.take(99)[:4] == (2, 2.0, 0.0, None)


def test_what_the_updates_and_their_decay_can_have_made_goes_on():
    longest_way = 3 * (1.0 + 0.01 * 10.0)

    log, path = collected([look(0), look(4, moved_sq=longest_way**2, decay=0.01)])

    assert path.restarts == []
    assert log.path.num_updates == 5


def test_between_two_updates_in_a_row_any_change_is_one_from_outside():
    _, same = collected([look(0), look(1)])
    _, changed = collected([look(0), look(1, moved_sq=0.01)])

    assert (same.restarts, changed.restarts) == ([], ["before 1"])


def test_other_parameters_begin_the_path_again_where_they_are():
    log, path = collected([look(0), look(1), look(2, 4.0, 7.0, generation=2), look(3, 4.0, 9.0, generation=2)])

    assert path.restarts == []
    assert (log.start, log.path[:5]) == (2, (2, 8.0, 0.0, 9.0, 0.9))


@pytest.mark.parametrize("broken", [{"sq_norm": math.nan}, {"sq_distance": math.inf}, {"moved_sq": math.nan}])
def test_a_look_that_is_not_finite_is_left_out(broken):
    log, path = collected([look(0), look(1, **broken), look(2, sq_distance=3.0)])

    assert path.restarts == []
    assert log.path[:5] == (3, 3.0, 0.0, 3.0, 0.9)


def test_another_model_forgets_the_path():
    log, _ = collected([look(0), look(1)])

    log.forget()

    assert (log.path, log.take(99)) == (None, None)


def test_the_push_is_that_since_half_of_the_updates_however_far_apart_the_looks_are():
    """Distances of a line: D = t², so that the last half has grown by ¾ t² for t / 2 updates of length 1."""
    log, _ = collected([look(t, sq_distance=(t + 1.0) ** 2, momentum=0.0) for t in places(600)])

    path = log.path

    made, gone = path.num_updates / 2, 0.75 * path.num_updates**2
    assert path.push.value == pytest.approx(gone / made - 1, rel=0.02)
    assert len(log._moments) < 10


def test_a_path_that_begins_again_has_no_push_of_before():
    log, _ = collected(
        [
            *(look(t, sq_distance=t + 1.0) for t in range(20)),
            look(25, moved_sq=1000.0),
            look(26, 2.0, 3.0, generation=2),
        ]
    )

    assert log.path.push is None
