"""The policy: which batch and rate it asks for, what it puts on probation, and what it takes back."""

import math
from dataclasses import replace

import pytest

from noisescale_core.estimators.looks import Look
from noisescale_core.estimators.path import Path, walk_factor
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_core.theory.prices import from_preference
from noisescale_lab.follow.actions import Restart, RunState, Train, Undo
from noisescale_lab.follow.memory import Memory, Probation, Settings
from noisescale_lab.follow.policy import advise, batch_odds
from noisescale_lab.follow.rate_lines import octaves_from_best

SETTINGS = Settings()


def looks(phi: float, *, batch: int = 64, steps: int = 800) -> tuple[Look, ...]:
    """Of a run whose |G|² is 1 and whose noise has forty equal directions."""
    noise = phi / batch
    variance = 2 / 40 * noise * noise + 4 / 40 * noise
    n = steps / 8
    one = Look(n, n * phi, n, n * phi * phi, n * (1 + variance), n * phi, n * batch, n, 0.1)
    return (one,) * 8


def path(ratio: float, *, num_updates: int = 100) -> Path:
    """Of plain SGD, with q of so many octaves."""
    return Path(num_updates, 1.0, 0.0, 2 ** (-2 * ratio))


def walked(ratio: float, *, momentum: float) -> Path:
    """The same with momentum, its own walk apart."""
    plain = path(ratio)
    return plain._replace(momentum=momentum, sum_sq_norm=1 / walk_factor(momentum, plain.num_updates))


def make_state(**changes) -> RunState:
    """A quarter of the plan, and nothing is wrong."""
    state = RunState(
        steps=250, progress=0.25, planned_steps=1000.0, exchange_rate=64.0, optimizer="SGD", batch=64,
        learning_rate=0.4, decay=1.0, first_loss=2.0, first_loss_error=0.01, loss=1.0, loss_error=0.01,
        noise_scale=NOTHING_MEASURED, looks=looks(40.0), path=path(0.03), schedule="constant",
    )  # fmt: skip
    return replace(state, **changes)


def start(state: RunState, settings: Settings = SETTINGS, **changes) -> Memory:
    memory = Memory.at_start(batch=state.batch, learning_rate=state.learning_rate, settings=settings)
    return replace(memory, **changes)


def asked(state: RunState, settings: Settings = SETTINGS, **changes):
    return advise(state, start(state, settings, **changes), settings)


def test_a_run_that_is_right_is_left_alone():
    action, memory = asked(make_state())

    assert (action.batch, action.learning_rate, action.is_on_probation) == (64, 0.4, False)
    assert "nothing to change" in action.reason
    assert memory == start(make_state())


@pytest.mark.parametrize(("phi", "low", "high"), [(4e4, 256, 256), (0.5, 8, 24)])
def test_the_batch_goes_to_that_of_least_expected_cost_four_times_up_or_eight_down_at_once(phi, low, high):
    action, _ = asked(make_state(looks=looks(phi)))

    assert low <= action.batch <= high
    assert "cheaper with odds of" in action.reason


def test_a_change_that_is_not_sure_is_not_made():
    state = make_state(looks=looks(4e4), exchange_rate=64.0)

    action, _ = asked(state, replace(SETTINGS, sure=1.01))

    assert action.batch == 64
    assert "would be cheaper with odds of" in action.reason


def test_a_batch_becomes_smaller_only_where_that_saves_a_fifth_however_sure_it_is():
    """On a fine-tuned language model odds of 9 in 10 and 16 % less cost came to half as much again."""
    state, settings = make_state(looks=looks(3.0)), replace(SETTINGS, sure=0.85)
    known = batch_odds(state, smallest=8, largest=256)

    assert known.probability > 0.85
    assert 0.04 < known.saving < 0.2
    kept, _ = asked(state, settings)
    assert kept.batch == 64
    assert f"save {known.saving:.0%}" in kept.reason
    assert asked(state, replace(settings, least_saving_of_smaller=known.saving))[0].batch == known.batch < 64


def test_of_adam_a_noise_scale_stands_for_a_larger_critical_batch():
    """Averaged gradients: where SGD's batch would shrink with odds of 9 in 10, theirs stays (decision 43)."""
    states = {kind: make_state(looks=looks(1.4), optimizer=kind) for kind in ("SGD", "AdamW")}
    odds = {kind: batch_odds(state, smallest=8, largest=256) for kind, state in states.items()}

    assert odds["AdamW"].critical_batch > 1.8 * odds["SGD"].critical_batch
    assert asked(states["SGD"])[0].batch < 64
    assert asked(states["AdamW"])[0].batch == 64
    with_momentum = batch_odds(replace(states["SGD"], momentum=0.9), smallest=8, largest=256)
    assert with_momentum == odds["AdamW"]


def test_the_first_steps_of_a_long_run_change_no_batch():
    early = make_state(progress=0.005, looks=looks(0.01))

    assert asked(early)[0].batch == 64
    assert asked(replace(early, progress=0.02))[0].batch < 64


def test_without_a_plan_the_batch_waits_for_fifty_steps_and_the_rate_for_ever():
    state = make_state(planned_steps=math.inf, progress=0.0, looks=looks(4e4), path=path(-3.0))

    assert asked(replace(state, steps=49))[0].batch == 64
    assert asked(replace(state, steps=50))[0].batch == 256
    assert asked(replace(state, looks=()))[0] == Train(64, 0.4, "nothing to change")


def test_a_preference_moves_with_the_critical_batch():
    def batch(phi):
        return asked(make_state(looks=looks(phi), stated_price=from_preference(0.5)))[0].batch

    assert batch(0.5) < 64 < batch(4e4)


@pytest.mark.parametrize(("optimizer", "most"), [("SGD", 2.0), ("Adam", 4**0.25)])
def test_the_rate_rises_by_no_more_than_the_root_of_the_batch(optimizer, most):
    action, _ = asked(make_state(optimizer=optimizer, looks=looks(4e5)))

    assert action.batch == 256
    assert 1 < action.learning_rate / 0.4 <= most * (1 + 1e-9)


def test_the_rate_of_sgd_falls_by_the_gain_when_the_batch_shrinks():
    action, memory = asked(make_state(batch=512, looks=looks(2.0, batch=512)))

    critical = action.critical_batch
    assert action.batch < 512
    assert action.learning_rate == pytest.approx(0.4 * (1 + critical / 512) / (1 + critical / action.batch))
    assert not action.is_on_probation
    assert memory.anchor_batch == 512


@pytest.mark.parametrize(("ratio", "side"), [(-2.0, "low"), (2.0, "high")])
def test_the_rate_moves_where_its_path_says_an_octave_at_most_at_once(ratio, side):
    action, memory = asked(make_state(path=path(ratio)))

    assert action.learning_rate == pytest.approx(0.4 * (2 if side == "low" else 0.5))
    assert f"× too {side} by the path of the parameters" in action.reason
    assert memory.next_move == pytest.approx(0.25 * 1.3)
    assert (memory.anchor_batch, memory.anchor_rate) == (64, action.learning_rate)


def test_the_next_move_waits_until_the_progress_has_grown():
    state = make_state(path=path(-2.0))

    assert asked(state, next_move=0.26)[0].learning_rate == 0.4


def moved_in_turn(ratios: list[float]) -> list[float]:
    """Octaves of each move of a rate whose path says so in turn, each past its probation."""
    state, memory, moves = make_state(loss=0.9), start(make_state()), []
    for number, ratio in enumerate(ratios):
        state = replace(state, progress=0.03 * 2**number, path=path(ratio))
        action, memory = advise(state, memory, SETTINGS)
        moves.append(math.log2(action.learning_rate / state.learning_rate))
        state, memory = replace(state, learning_rate=action.learning_rate), replace(memory, probation=None)
    return moves


def test_a_move_that_goes_back_is_half_as_large_as_any_before_and_a_quarter_of_an_octave_at_least():
    """The best rate lies between the two (decision 44)."""
    assert moved_in_turn([-3.0, 3.0, -3.0, 3.0]) == pytest.approx([1.0, -0.5, 0.25, -0.25])
    assert moved_in_turn([-3.0, -3.0, 3.0, 3.0]) == pytest.approx([1.0, 1.0, -0.5, -0.5])


def test_a_move_that_was_undone_makes_the_next_one_no_smaller():
    _, raised = asked(make_state(path=path(-3.0)))
    undo, after = advise(make_state(learning_rate=0.8, loss=1.9), raised, SETTINGS)
    lowered, _ = advise(make_state(progress=0.5, path=path(3.0)), after, SETTINGS)

    assert isinstance(undo, Undo)
    assert lowered.learning_rate == pytest.approx(0.2)


@pytest.mark.parametrize(("optimizer", "momentum", "ratio"), [("SGD", 0.0, -0.2), ("AdamW", 0.9, 0.0)])
def test_losses_that_fall_by_what_was_promised_say_that_the_rate_is_too_low(optimizer, momentum, ratio):
    silent, kept, broken = (
        make_state(path=walked(ratio, momentum=momentum), promise=promise, optimizer=optimizer)
        for promise in (None, math.log(0.9), math.log(0.05))
    )

    assert asked(silent)[0].learning_rate == 0.4
    assert asked(kept)[0].learning_rate > 0.4
    assert octaves_from_best(broken).mean > octaves_from_best(kept).mean + 0.6


def test_of_momentum_the_share_of_a_promise_says_nothing():
    """In a long run it falls below what it is anywhere in a short one, at the best rate, too (decision 39)."""
    of_momentum = path(0.1)._replace(momentum=0.9)
    states = [make_state(path=of_momentum, promise=promise) for promise in (None, math.log(0.05))]

    silent, broken = map(octaves_from_best, states)
    assert silent is not None
    assert silent == broken


@pytest.mark.parametrize(("optimizer", "too_early", "first"), [("SGD", 0.24, 0.25), ("AdamW", 0.08, 0.12)])
def test_before_a_share_of_the_plan_nothing_tells_the_rate_of_momentum_and_of_adam(optimizer, too_early, first):
    """Moves by it cost more there than waiting does, on design tasks by lines of the others (decision 42)."""
    of_low_rate = walked(-2.0, momentum=0.9)
    early, later = (make_state(progress=share, path=of_low_rate, optimizer=optimizer) for share in (too_early, first))

    assert octaves_from_best(early) is None
    assert octaves_from_best(replace(early, promise=math.log(0.9))) is None
    assert octaves_from_best(later).mean < -1
    assert asked(early)[0].learning_rate == 0.4
    assert asked(later)[0].learning_rate > 0.4


def test_adams_promise_counts_a_little_before_its_path_does():
    state = make_state(progress=0.1, path=walked(-2.0, momentum=0.9), optimizer="Adam", promise=math.log(0.9))

    assert octaves_from_best(state).mean < -1
    assert octaves_from_best(replace(state, promise=None)) is None


def test_a_raise_is_on_probation_and_a_lower_rate_is_not():
    up, memory = asked(make_state(path=path(-2.0)))
    down, _ = asked(make_state(path=path(2.0)))

    assert (up.is_on_probation, up.look_after) == (True, 8)
    assert memory.probation == Probation(64, 0.4, 1.0, 0.01, 1.0, pytest.approx(0.25 * 1.3 + 0.03))
    assert (down.is_on_probation, down.look_after) == (False, None)


@pytest.mark.parametrize("state", [{"loss": math.nan}, {}])
def test_where_nothing_can_be_undone_no_rate_is_raised_by_more_than_the_root_of_two(state):
    settings = SETTINGS if state else replace(SETTINGS, may_undo=False)

    action, memory = asked(make_state(path=path(-2.0), **state), settings)

    assert action.learning_rate == pytest.approx(0.4 * math.sqrt(2))
    assert memory.probation is None


RAISED = Probation(batch=64, learning_rate=0.4, loss=1.0, loss_error=0.01, gained=1.0, until=0.4)


@pytest.mark.parametrize("loss", [1.26, math.inf])
def test_a_raise_after_which_the_loss_rises_is_undone_and_its_rate_not_tried_again(loss):
    state = make_state(learning_rate=0.8, loss=loss)

    action, memory = asked(state, probation=RAISED)

    assert isinstance(action, Undo)
    assert (action.batch, action.learning_rate) == (64, 0.4)
    assert memory.probation is None
    assert memory.ceiling == pytest.approx(1.1 * 0.4)
    assert memory.next_move == pytest.approx(0.25 * 1.5)
    again, _ = advise(make_state(progress=0.5, path=path(-3.0)), memory, SETTINGS)
    assert again.learning_rate == 0.4


@pytest.mark.parametrize("loss", [0.9, 1.2, math.nan])
def test_a_raise_on_probation_waits_where_the_loss_does_not_rise_beyond_a_quarter_of_what_was_gained(loss):
    action, memory = asked(make_state(loss=loss, path=path(-3.0)), probation=RAISED)

    assert action == Train(64, 0.4, "the last raise is on probation")
    assert memory.probation == RAISED


def test_after_its_probation_the_next_move_may_come():
    _, memory = asked(make_state(progress=0.41, path=path(-3.0)), probation=RAISED)

    assert memory.probation != RAISED
    assert memory.next_move > 0.41


def test_divergence_starts_again_at_a_quarter_of_the_rate_but_not_for_ever():
    state = make_state(loss=math.inf)

    action, memory = asked(state)

    assert action == Restart(64, 0.1, "the loss is not finite: from the start at 0.25 × the learning rate")
    assert memory.restarts == 1
    assert isinstance(asked(state, restarts=4)[0], Train)


def test_a_loss_that_has_not_fallen_starts_again_only_where_the_rate_is_too_high():
    stuck = make_state(loss=2.0)

    assert isinstance(asked(replace(stuck, path=path(2.0)))[0], Restart)
    assert isinstance(asked(stuck)[0], Train)
    assert isinstance(asked(replace(stuck, path=path(2.0), progress=0.1))[0], Train)


def test_a_run_beyond_its_plan_gets_back_what_the_schedule_took_once_and_if_that_is_permitted():
    state = make_state(progress=1.01, decay=0.1)
    permitted = replace(SETTINGS, may_extend=True)

    action, memory = asked(state, permitted)

    assert action.learning_rate == pytest.approx(4.0)
    assert action.is_on_probation
    assert memory.is_extended
    assert asked(state)[0].learning_rate == 0.4


@pytest.mark.parametrize(
    ("permission", "state"),
    [
        ("may_change_batch", {"looks": looks(4e4)}),
        ("may_change_rate", {"path": path(-2.0)}),
        ("may_restart", {"loss": math.inf}),
    ],
)
def test_what_is_not_permitted_is_not_done(permission, state):
    action, _ = asked(make_state(**state), replace(SETTINGS, **{permission: False}))

    assert isinstance(action, Train)
    assert (action.batch, action.learning_rate) == (64, 0.4)
