"""The states of an optimizer step: which follow on which, and what they keep."""

import dataclasses

import pytest
import torch

from noisescale.capture.step import Gathered, Idle, Logged, Measuring, Step
from noisescale.capture.sums.small_batches import SmallBatchSize

ONE = SmallBatchSize(1.0)
NOTHING = Gathered()
SOMETHING = NOTHING.with_small_batches(frozenset({0, 1}), [ONE])
ROW = torch.ones(2)


def test_a_step_is_measured_and_then_logged_with_its_small_batches_and_norms():
    step = Step(NOTHING)

    step.gather(SOMETHING)
    step.log(ROW)

    assert step.state == Logged(SOMETHING, ROW)
    assert step.is_logged
    assert step.norms is ROW


def test_a_small_batch_behind_the_log_makes_the_norms_those_of_another_gradient():
    step = Step(NOTHING)
    step.log(ROW)

    step.gather(SOMETHING)

    assert step.state == Logged(SOMETHING)
    assert step.norms is None


def test_after_an_optimizer_step_nothing_of_the_step_before_is_left():
    step = Step(NOTHING)
    step.gather(SOMETHING)
    step.log(ROW)

    step.begin(NOTHING)

    assert step.state == Measuring(NOTHING)
    assert not step.number()


def test_a_step_behind_a_logged_one_without_an_optimizer_step_is_numbered_once():
    step = Step(NOTHING)
    step.log()

    step.start_anew(NOTHING)
    step.gather(SOMETHING)

    assert step.state == Measuring(SOMETHING, follows_logged=True)
    assert [step.number(), step.number()] == [True, False]
    assert step.gathered is SOMETHING


def test_gradients_cleared_before_the_log_begin_the_same_step_anew():
    step = Step(NOTHING)
    step.gather(SOMETHING)

    step.start_anew(NOTHING)

    assert step.state == Measuring(NOTHING)
    assert not step.number()


def test_a_step_that_waits_for_its_number_keeps_it_when_its_gradients_are_cleared_again():
    step = Step(NOTHING)
    step.log()
    step.start_anew(NOTHING)

    step.start_anew(NOTHING)

    assert step.number()


def test_an_idle_step_gathers_no_small_batch_and_is_idle_until_it_is_logged():
    step = Step(NOTHING)
    step.rest(may_pass=True)

    step.gather(SOMETHING)
    step.start_anew(NOTHING)

    assert step.state == Idle(NOTHING, may_pass=True)
    step.log()
    assert step.state == Logged(NOTHING)


def test_neither_a_state_nor_the_section_can_be_set_from_outside():
    step = Step(NOTHING)

    with pytest.raises(dataclasses.FrozenInstanceError):
        step.state.follows_logged = True
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.section.is_marked = True
    with pytest.raises(AttributeError):
        step.gathered.adds_up = False
    with pytest.raises(AttributeError):
        step.state = Logged(NOTHING)


def test_backward_passes_can_be_left_out_inside_a_marked_small_batch():
    step = Step(NOTHING)
    assert step.section.is_plain

    step.mark(True)
    step.ignore(True)
    assert (step.section.is_marked, step.section.is_ignored, step.section.is_plain) == (True, True, False)

    step.ignore(False)
    assert step.section.is_marked
    step.mark(False)
    assert step.section.is_plain


class TestGathered:
    def test_parameters_that_some_small_batches_leave_out_make_a_step_partial_for_good(self):
        both, one = frozenset({0, 1}), frozenset({0})

        gathered = NOTHING.with_small_batches(both, [ONE])
        assert not gathered.is_partial
        gathered = gathered.with_small_batches(one, [ONE])
        assert gathered.is_partial
        for _ in range(2):
            gathered = gathered.with_small_batches(one, [ONE])
        assert gathered.is_partial

    def test_a_backward_of_the_other_parameters_completes_the_last_small_batch(self):
        first, second, both = frozenset({0}), frozenset({1}), frozenset({0, 1})
        gathered = NOTHING.with_small_batches(both, [ONE], ROW).with_small_batches(first, [ONE], ROW)
        assert gathered.is_partial

        gathered = gathered.with_last_joined(second, 2 * ROW)

        assert not gathered.is_partial
        assert gathered.last == both
        assert gathered.sizes == (ONE, ONE)
        assert [row.tolist() for row in gathered.sq_norm_rows] == [[1.0, 1.0], [3.0, 3.0]]

    def test_a_doubt_stays_and_the_newest_reason_is_said(self):
        gathered = NOTHING.doubted("first").doubted("second", adds_up=True).doubted()

        assert (gathered.adds_up, gathered.reason) == (False, "second")
        assert NOTHING.doubted("no sizes", adds_up=True).adds_up
        assert gathered.doubted() is gathered

    def test_what_is_handed_over_to_other_ranks_leaves_the_entries_and_not_the_facts(self):
        both, one = frozenset({0, 1}), frozenset({0})
        gathered = NOTHING.with_small_batches(both, [ONE], ROW).with_small_batches(one, [ONE], ROW)

        gathered = gathered.doubted("why").handed_over().with_sum_over_ranks("a sum")

        assert (gathered.sizes, gathered.sq_norm_rows, gathered.over_ranks) == ((), (), ("a sum",))
        assert (gathered.is_partial, gathered.adds_up, gathered.reason) == (True, False, "why")
