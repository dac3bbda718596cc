import math
from dataclasses import replace

import pytest

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_lab.follow.actions import Adopt, Branch, BranchedArm, Restart, RunState, Train
from noisescale_lab.reproduce.advice.first_policy import advise
from noisescale_lab.reproduce.advice.first_policy_memory import FirstPolicyMemory, FirstPolicySettings

SETTINGS = FirstPolicySettings()


def noise_scale(phi: float, *, spread: float = 0.0, blocks: int = 16) -> NoiseScaleEstimate:
    """Of blocks whose tr Σ is φ and whose |G|² is 1, each by turns above and below by a share."""
    signs = [1 if block % 2 else -1 for block in range(blocks)]
    return estimate(WindowSums.from_blocks([(1.0, phi, 1.0 + spread * sign) for sign in signs]))


def make_state(**changes) -> RunState:
    state = RunState(
        steps=100,
        progress=0.02,
        planned_steps=1000.0,
        exchange_rate=64.0,
        optimizer="sgd",
        batch=64,
        learning_rate=0.4,
        decay=1.0,
        first_loss=2.0,
        first_loss_error=0.01,
        loss=1.0,
        loss_error=0.01,
        noise_scale=noise_scale(64.0),
    )
    return replace(state, **changes)


def start(state: RunState, settings: FirstPolicySettings = SETTINGS, **changes) -> FirstPolicyMemory:
    memory = FirstPolicyMemory.at_start(batch=state.batch, learning_rate=state.learning_rate, settings=settings)
    return replace(memory, **changes)


def test_a_run_that_is_right_is_left_alone():
    state = make_state()

    action, _ = advise(state, start(state), SETTINGS)

    assert action == Train(64, 0.4, "nothing to change")


def test_the_batch_goes_to_the_root_of_price_and_noise_scale_and_not_to_the_noise_scale():
    state = make_state(batch=512, noise_scale=noise_scale(16.0))

    action, _ = advise(state, start(state), SETTINGS)

    assert isinstance(action, Train)
    assert action.batch == 32
    assert "batch 512 to 32" in action.reason


def test_the_rate_of_sgd_falls_by_the_gain_when_the_batch_shrinks():
    state = make_state(batch=512, noise_scale=noise_scale(16.0))

    action, _ = advise(state, start(state), SETTINGS)

    assert action.learning_rate == pytest.approx(0.4 * (1 + 16 / 512) / (1 + 16 / 32))


@pytest.mark.parametrize(("optimizer", "most"), [("sgd", 2.0), ("adam", 4**0.25)])
def test_the_rate_rises_by_no_more_than_the_root_of_the_batch(optimizer, most):
    state = make_state(optimizer=optimizer, batch=16, noise_scale=noise_scale(6400.0))

    action, _ = advise(state, start(state), SETTINGS)

    assert action.batch == 64
    assert 0.4 < action.learning_rate <= 0.4 * most


def test_the_rate_is_computed_from_the_tested_one_and_does_not_ratchet():
    memory = start(make_state())
    state = make_state()

    for phi in [4.0, 1024.0] * 20:
        action, memory = advise(replace(state, noise_scale=noise_scale(phi)), memory, SETTINGS)
        state = replace(state, batch=action.batch, learning_rate=action.learning_rate)

    assert memory.anchor_rate == 0.4
    assert 0.2 < state.learning_rate < 0.8


def test_the_batch_stops_half_way_between_what_is_sure_and_what_is_likely():
    wide = noise_scale(1024.0, spread=1.6)
    state = make_state(noise_scale=wide)

    action, _ = advise(state, start(state), SETTINGS)

    sure, likely = math.sqrt(64 * wide.low), math.sqrt(64 * wide.value)
    assert action.batch == round(math.sqrt(sure * likely))


def test_a_lower_bound_alone_can_raise_the_batch_and_never_lower_it():
    unbounded = noise_scale(6400.0, spread=4.0)
    small, large = make_state(batch=16, noise_scale=unbounded), make_state(batch=4096, noise_scale=unbounded)

    raised, _ = advise(small, start(small), SETTINGS)
    left, _ = advise(large, start(large), SETTINGS)

    assert unbounded.value is None
    assert raised.batch > 16
    assert left.batch == 4096


def test_a_batch_far_too_large_shrinks_after_a_few_steps_as_the_gradient_is_plain_to_see():
    too_few = noise_scale(4.0, blocks=2)
    state = make_state(batch=4096, noise_scale=too_few)

    action, _ = advise(state, start(state), SETTINGS)

    assert too_few.value is None
    assert action.batch == 16


def test_divergence_starts_again_at_a_quarter_of_the_rate_but_not_for_ever():
    state = make_state(loss=math.nan, noise_scale=noise_scale(64.0, blocks=2))

    action, memory = advise(state, start(state), SETTINGS)
    tired, _ = advise(state, replace(memory, restarts=SETTINGS.most_restarts), SETTINGS)

    assert isinstance(action, Restart)
    assert action.learning_rate == pytest.approx(0.1)
    assert "not finite" in action.reason
    assert isinstance(tired, Train)


def test_a_loss_above_its_start_fails_late_in_the_plan_only():
    early, late = (make_state(progress=progress, loss=2.5) for progress in (0.02, 0.2))

    patient, _ = advise(early, start(early), SETTINGS)
    failed, _ = advise(late, start(late), SETTINGS)

    assert isinstance(patient, Train)
    assert isinstance(failed, Restart)
    assert failed.learning_rate == pytest.approx(0.2)
    assert "2.5" in failed.reason


def test_a_test_is_due_at_five_percent_of_the_plan_and_tries_twice_the_rate_while_the_loss_falls():
    state = make_state(progress=0.06)

    action, _ = advise(state, start(state), SETTINGS)

    assert isinstance(action, Branch)
    assert action.arms == ((64, 0.4), (64, 0.8))
    assert action.steps == 5
    assert action.held_out == 160


def test_longer_arms_are_tried_later_on():
    state = make_state(progress=0.3)

    action, _ = advise(state, start(state), SETTINGS)

    assert action.steps == round(0.05 * 0.3 * 1000)
    assert action.held_out == 480


@pytest.mark.parametrize(
    "memory",
    [
        {"tested_loss": 1.005, "tested_error": 0.01},  # no fall beyond the error
        {"tested_loss": 2.0, "is_doubted": True},
    ],
)
def test_half_the_rate_is_tried_where_the_loss_does_not_fall(memory):
    state = make_state(progress=0.06)

    action, _ = advise(state, start(state, **memory), SETTINGS)

    assert action.arms == ((64, 0.4), (64, 0.2))


def test_an_error_that_is_not_known_does_not_hide_a_fall():
    state = make_state(progress=0.06, loss_error=math.inf, first_loss_error=math.inf)

    action, _ = advise(state, start(state), SETTINGS)

    assert action.arms[1] == (64, 0.8)


def test_both_ways_are_tried_where_that_is_asked_for():
    state, settings = make_state(progress=0.06), FirstPolicySettings(tests_both_ways=True)

    action, _ = advise(state, start(state, settings), settings)

    assert action.arms == ((64, 0.4), (64, 0.2), (64, 0.8))


def test_a_rate_whose_own_arm_rises_is_doubted_and_soon_tested_downwards():
    arms = (BranchedArm(64, 0.4, 1.3), BranchedArm(64, 0.8, 1.5))
    state = make_state(progress=0.1, arms=arms, before_loss=1.2)

    action, memory = advise(state, start(state), SETTINGS)
    halved, again = advise(
        replace(state, progress=0.14, arms=(BranchedArm(64, 0.4, 1.3), BranchedArm(64, 0.2, 1.299))), memory, SETTINGS
    )

    assert (action.arm, memory.is_doubted) == (0, True)
    assert memory.next_branch == pytest.approx(0.13)
    assert (halved.arm, again.is_doubted) == (0, False)


def test_half_the_rate_need_not_beat_a_fall_that_the_present_one_did_not_have():
    arms = (BranchedArm(64, 0.4, 1.3), BranchedArm(64, 0.2, 1.25))
    state = make_state(progress=0.1, arms=arms, before_loss=1.2)

    action, _ = advise(state, start(state), SETTINGS)

    assert action.arm == 1


def test_a_run_beyond_its_plan_gets_back_what_the_schedule_took_once_and_if_that_is_permitted():
    settings = FirstPolicySettings(may_extend=True, may_branch=False)
    state = make_state(progress=1.1, decay=0.1)
    _, before = advise(make_state(), start(state, settings), settings)

    refused, _ = advise(state, before, replace(settings, may_extend=False))
    action, memory = advise(state, before, settings)
    again, _ = advise(replace(state, progress=1.5, learning_rate=4.0), memory, settings)
    early, _ = advise(replace(state, progress=0.9), before, settings)

    assert action.learning_rate == pytest.approx(4.0)
    assert memory.anchor_rate == pytest.approx(4.0)
    assert "the plan is over" in action.reason
    assert again.learning_rate == pytest.approx(4.0)
    assert refused.learning_rate == early.learning_rate == 0.4


def test_what_comes_back_after_the_plan_is_no_more_than_the_run_has_borne():
    settings = FirstPolicySettings(may_extend=True, may_branch=False, may_change_batch=False)
    late = make_state(progress=1.1, decay=0.1, learning_rate=3.2)  # doubled three times while it decayed
    _, before = advise(make_state(), start(make_state(), settings), settings)

    action, _ = advise(late, before, settings)

    assert action.learning_rate * 0.1 == pytest.approx(0.4)


def test_a_halved_rate_and_a_new_batch_move_what_counts_as_borne():
    borne = start(make_state(), highest_rate=0.4)
    arms = (BranchedArm(64, 0.4, 1.3), BranchedArm(64, 0.2, 1.0))

    _, halved = advise(make_state(progress=0.1, arms=arms, before_loss=1.2), borne, SETTINGS)
    change, moved = advise(make_state(batch=512, noise_scale=noise_scale(16.0)), borne, SETTINGS)

    assert halved.highest_rate == pytest.approx(0.2)
    assert moved.highest_rate == pytest.approx(change.learning_rate)


def test_what_a_restart_forgets():
    state = make_state(loss=math.nan, noise_scale=noise_scale(64.0, blocks=2))

    _, memory = advise(state, start(state, tested_loss=1.0, is_doubted=True), SETTINGS)

    assert (memory.tested_loss, memory.is_doubted) == (None, False)


def test_a_rising_loss_brings_the_next_branch_forward():
    state = make_state(progress=0.2, loss=1.5)
    memory = start(state, next_branch=0.6, last_branch=0.1, lowest_loss=1.0, lowest_error=0.01)

    action, _ = advise(state, memory, SETTINGS)
    steady, _ = advise(replace(state, loss=1.005), memory, SETTINGS)

    assert isinstance(action, Branch)
    assert isinstance(steady, Train)


@pytest.mark.parametrize(
    ("present", "half", "double", "chosen"),
    [
        (1.0, 1.1, 0.8, 2),  # doubling gains
        (1.0, 1.1, 0.999, 0),  # by less than 5 % of the fall
        (1.0, 0.95, 1.2, 0),  # halving gains, as it does anywhere for a while
        (1.25, 1.0, 3.0, 1),  # halving gains more than the run itself
        (math.inf, 1.0, math.inf, 1),  # what diverges is left
        (1.0, math.nan, math.inf, 0),
    ],
)
def test_the_arm_that_is_adopted(present, half, double, chosen):
    arms = (BranchedArm(64, 0.4, present), BranchedArm(64, 0.2, half, 0.01), BranchedArm(64, 0.8, double, 0.01))
    state = make_state(progress=0.1, arms=arms, before_loss=1.2)

    action, memory = advise(state, start(state), SETTINGS)

    assert isinstance(action, Adopt)
    assert (action.arm, action.learning_rate) == (chosen, arms[chosen].learning_rate)
    assert memory.anchor_rate == arms[chosen].learning_rate
    assert memory.next_branch == pytest.approx(0.13 if chosen else 0.3)


def test_a_gain_within_its_error_changes_nothing():
    arms = (BranchedArm(64, 0.4, 1.0), BranchedArm(64, 0.8, 0.8, 0.5))
    state = make_state(progress=0.1, arms=arms, before_loss=1.2)

    action, _ = advise(state, start(state), SETTINGS)

    assert action.arm == 0


def test_arms_without_the_loss_before_them_are_refused():
    state = make_state(arms=(BranchedArm(64, 0.4, 1.0),))

    with pytest.raises(ValueError, match="before_loss must be given"):
        advise(state, start(state), SETTINGS)


@pytest.mark.parametrize(
    ("permission", "state"),
    [
        ("may_restart", make_state(loss=math.nan)),
        ("may_change_batch", make_state(batch=512)),
        ("may_branch", make_state(progress=0.1)),
    ],
)
def test_what_is_not_permitted_is_not_done(permission, state):
    settings = FirstPolicySettings(**{permission: False})

    allowed, _ = advise(state, start(state), SETTINGS)
    action, _ = advise(state, start(state, settings), settings)

    assert not (isinstance(allowed, Train) and allowed.batch == state.batch)
    assert isinstance(action, Train)
    assert action.batch == state.batch


@pytest.mark.parametrize("field", ["exchange_rate", "batch", "learning_rate"])
def test_a_run_without_a_price_or_settings_is_refused_by_name(field):
    with pytest.raises(ValueError, match=f"{field} .*got 0"):
        make_state(**{field: 0})
