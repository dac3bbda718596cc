"""Which steps are far smaller than the others, and which batch is in use."""

import pytest

from noisescale_core.estimators.step_sizes import batch_in_use, is_far_smaller


@pytest.mark.parametrize(("size", "is_left_out"), [(5, True), (120, True), (181, True), (182, False), (300, False)])
def test_a_step_of_less_than_seven_tenths_of_the_usual_one_is_far_smaller(size: int, is_left_out: bool) -> None:
    assert is_far_smaller(size, [256, 256, 256, size]) is is_left_out


def test_of_two_sizes_in_turn_the_larger_is_usual() -> None:
    assert is_far_smaller(100, [256, 100, 256, 100])


def test_after_as_many_steps_of_a_smaller_batch_that_one_is_usual() -> None:
    assert is_far_smaller(64, [256] * 8 + [64] * 8)
    assert not is_far_smaller(64, [256] * 7 + [64] * 9)


def test_a_run_of_one_step_has_the_batch_of_that_step() -> None:
    assert batch_in_use([]) is None
    assert batch_in_use([64.0]) == 64.0


def test_a_batch_that_has_just_grown_is_in_use_and_one_odd_step_is_not() -> None:
    assert batch_in_use([64] * 14 + [256, 256]) == 256
    assert batch_in_use([256] * 15 + [200]) == 256
