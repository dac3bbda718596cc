from dataclasses import replace

import pytest

from advised_runs import KNOWN, RESOLVED, advised_run, stretch
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.plan import growth
from noisescale_core.advice.recommendation import recommend
from noisescale_core.estimators.uncertainty import Reason, State

CONFIRM = "Confirm it with a short branch from a checkpoint: the same held-out loss, present batch against the new one."


def advice(run, kappa=UNCALIBRATED):
    return recommend(run, Measured(kappa))


def test_more_steps_are_named_with_what_they_take_and_are_not_extra():
    estimate = replace(RESOLVED, state=State.TENTATIVE, z=3.0, updates_needed=178)

    found = advice(advised_run(noise_scale=estimate)).next_steps

    assert [one.kind for one in found] == ["more_steps", "more_micro_batches"]
    assert (found[0].steps, found[0].is_extra) == (178, False)
    assert found[0].hours == pytest.approx(178 * 2 / 3600)
    assert found[0].usd == pytest.approx(178 * 2 / 3600 * 24)


def test_what_resolves_it_is_said_with_its_hours_and_usd():
    fields = {"state": State.UNRESOLVED, "value": None, "high": None, "reason": Reason.INTERVAL_UNBOUNDED}
    estimate = replace(RESOLVED, **fields, z=1.5, updates_needed=1800)

    long, short = (
        advice(advised_run(noise_scale=estimate, planned_steps=planned)).next_step for planned in (40_000, 30_000)
    )

    assert "a window of 1,800 steps resolves it" in long
    assert long.endswith("That is 1 h, 24 USD, which the plan takes anyway, if |G|² stays as it is.")
    # the window is 5 % of the run, and its first look comes a little early
    assert short.endswith("a window is 5 % of the run, so it takes a run of at least 30,600 steps.")


def test_a_tentative_window_is_decided_by_its_odds_and_still_says_what_would_resolve_it():
    estimate = replace(RESOLVED, state=State.TENTATIVE, z=1.5, updates_needed=1800)

    found = advice(advised_run(noise_scale=estimate, planned_steps=40_000))

    assert found.decision == "increase"
    assert found.next_step.startswith("Confirm it with a short branch")
    assert found.next_steps[0].text == (
        "Keep training until a window holds 1,800 steps, 1 h, 24 USD, which the plan takes anyway, if |G|² stays as it "
        "is."
    )


@pytest.mark.parametrize(
    ("changes", "next_step"),
    [
        ({"z": 1.5, "updates_needed": 1800}, CONFIRM),
        ({"z": 6.0, "updates_needed": 10}, CONFIRM),
        (
            {"z": 1.5, "value": None, "high": None, "state": State.UNRESOLVED, "reason": Reason.INTERVAL_UNBOUNDED},
            "This run ended before its noise scale was resolved: split each step of the next one into more "
            "micro-batches, or let it train for longer.",
        ),
    ],
)
def test_a_run_that_has_ended_is_not_told_to_go_on(changes, next_step):
    estimate = replace(RESOLVED, **{"state": State.TENTATIVE, **changes})

    found = advice(advised_run(noise_scale=estimate, has_ended=True))

    assert found.next_step == next_step
    assert [one.kind for one in found.next_steps] == ["more_micro_batches"]
    assert "Keep training" not in str(found)


def test_a_run_without_a_signal_is_promised_no_number_of_steps():
    estimate = replace(
        RESOLVED, state=State.UNRESOLVED, value=None, high=None, reason=Reason.NO_SIGNAL_YET, updates_needed=900
    )

    found = advice(advised_run(noise_scale=estimate)).next_steps

    assert found[0].steps is None
    assert "900" not in found[0].text


def test_a_branch_is_three_arms_of_a_twentieth_of_the_run_and_at_least_eight_steps():
    found = advice(advised_run()).next_steps[0]

    each = max(0.05 * 500 * 256, 8 * 512)
    assert found.kind == "branch"
    assert found.is_extra
    assert found.examples == pytest.approx(3 * each)
    assert found.steps == pytest.approx(each / 128 + each / 256 + each / 512)


def test_a_sweep_calibrates_and_costs_five_runs():
    answer = advice(advised_run())
    found, critical = answer.next_steps[-1], answer.critical_batch.value

    min_steps = 5500 / (1 + critical / 256)
    assert found.kind == "sweep"
    assert found.examples == pytest.approx(critical * min_steps * sum(1 + x for x in (0.25, 0.5, 1, 2, 4)))
    assert "sweep" not in {one.kind for one in advice(advised_run(), KNOWN).next_steps}


def test_the_next_step_says_what_a_branch_costs():
    found = advice(advised_run())

    assert "A branch takes about 88 steps" in found.next_step


def test_a_decayed_learning_rate_decides_nothing_and_points_to_the_time_before():
    found = advice(advised_run(spent=[stretch(2.0)] * 50, batch_size=2.0, learning_rate=0.005), KNOWN)

    assert found.decision == "insufficient_evidence"
    assert "below a tenth of its peak" in found.reason
    assert "learning_rate_decayed" in {caution.code for caution in found.warnings}
    assert "to_step" in found.next_step


def test_a_growth_is_read_from_resolved_stretches_at_a_learning_rate_that_says_something():
    growing = [stretch(1.0, value=1.0 + place) for place in range(40)]
    misled = [
        *growing,
        *[stretch(1.0, value=1e6, is_resolved=False)] * 20,
        *[stretch(1.0, value=1e6, learning_rate=0.001)] * 20,
    ]

    assert growth(misled)[0] == pytest.approx(growth(growing)[0], rel=0.1)


def test_a_calibrated_adam_language_model_is_told_by_how_much():
    found = advice(advised_run(optimizer="AdamW", unit="tokens"), KNOWN)

    text = next(caution.text for caution in found.warnings if caution.code == "adam_language_model")
    assert text.endswith(KNOWN.said)
