"""The verdict on a learning rate: its posterior by simulation, its words and odds, and when nothing is said."""

import math
import random
from dataclasses import replace

import pytest

from noisescale_core.advice.learning_rate.rate_coefficients import OwnLines, coefficients, family_of, schedule_of
from noisescale_core.advice.learning_rate.rate_verdict import far_off, octaves_of, rate_verdict
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.estimators.path import Path, PathRatio, Push, path_ratio, sketch_error, walk_factor

ERROR = sketch_error() / (2 * math.log(2))
"""Of q by a sketch, where every update was looked at."""


def path_with(ratio, num_updates=250, momentum=0.9):
    """A path whose ratio is so many octaves."""
    return Path(num_updates, 4.0**ratio / walk_factor(momentum, num_updates), 0.0, 1.0, momentum)


def telling(octaves, *, family="Adam", progress=0.25, schedule="unknown"):
    """The ratio that tells so many octaves from the best rate."""
    line, prior = coefficients().line_at(family, progress, schedule), coefficients().prior_sd
    shrinkage = (line.slope * prior) ** 2 / ((line.slope * prior) ** 2 + line.scatter**2 + ERROR**2)
    return line.offset + line.slope * octaves / shrinkage


def verdict(octaves=0.0, num_updates=250, momentum=0.9, **changes):
    """What is said of a path that tells so many octaves, of 1,000 planned steps."""
    asked = {"optimizer": "AdamW", "planned_steps": 1000, **changes}
    ratio = telling(octaves, progress=num_updates / 1000)
    return rate_verdict(path_with(ratio, num_updates, momentum), **asked)


def test_a_path_is_made_with_the_ratio_that_a_test_asks_for():
    assert path_ratio(path_with(-0.3)).value == pytest.approx(-0.3)
    assert verdict(-1.3).octaves == pytest.approx(-1.3)


@pytest.mark.parametrize("family", ["SGD", "momentum", "Adam", "Muon"])
@pytest.mark.parametrize("schedule", ["unknown", "constant", "cosine"])
@pytest.mark.parametrize("progress", [0.12, 0.25, 0.5, 1.0])
def test_what_is_known_of_the_rate_is_the_regression_of_simulated_runs(progress, schedule, family):
    """Runs drawn as the file says: y from the prior, q on the line with its scatter and the sketch's error."""
    line, prior = coefficients().line_at(family, progress, schedule), coefficients().prior_sd
    rng, left = random.Random(7), []
    for _ in range(6_000):
        y = rng.gauss(0, prior)
        q = line.offset + line.slope * y + rng.gauss(0, line.scatter) + rng.gauss(0, ERROR)
        found = octaves_of(PathRatio(q, ERROR), line)
        if abs(found.mean) < 3:  # beyond which less is said than is found
            left.append((y - found.mean) / found.sd)

    assert math.sqrt(sum(one * one for one in left) / len(left)) == pytest.approx(1, abs=5 / math.sqrt(2 * len(left)))
    assert abs(sum(left) / len(left)) < 5 / math.sqrt(len(left))


def test_a_worse_measurement_says_less_and_is_less_sure():
    line = coefficients().line_at("Adam", 0.25, "unknown")
    low = line.offset - 0.4

    sure, unsure = octaves_of(PathRatio(low, 0.0), line), octaves_of(PathRatio(low, 0.3), line)

    assert sure.mean < unsure.mean < 0
    assert unsure.sd > sure.sd


def test_where_the_ratio_is_that_of_the_best_rate_the_rate_is_taken_for_it():
    line = coefficients().line_at("momentum", 0.5, "cosine")

    assert octaves_of(PathRatio(line.offset, 0.0), line).mean == 0


@pytest.mark.parametrize(
    ("octaves", "word"),
    [(-1.2, "too_low"), (-0.85, "perhaps_too_low"), (0.85, "perhaps_too_high"), (1.2, "too_high")],
)
def test_the_word_follows_the_ratio(octaves, word):
    found = verdict(octaves)

    assert found.verdict == word
    assert found.headline == f"Learning rate: {word.replace('_', ' ')}"


def test_a_rate_that_is_too_low_is_told_by_how_much_with_interval_and_odds():
    found = verdict(-1.5, 500)

    assert found.octaves == pytest.approx(-1.5)
    assert found.factor == pytest.approx(2**1.5)
    assert found.factor_low < found.factor < found.factor_high
    assert (found.factor_low, found.factor_high) == (pytest.approx(2**-found.high), pytest.approx(2**-found.low))
    assert 0.85 < found.probability < 0.99
    assert found.ratio_low < found.ratio < found.ratio_high
    assert "as far as a random walk" in found.reason
    assert "they push on in one direction" in found.reason
    assert "The best rate is 2.8 × [" in found.reason
    assert "and higher with a probability of" in found.reason


def test_a_rate_that_is_too_high_is_told_to_be_lowered():
    found = verdict(2.5, 500)

    assert found.factor < 1
    assert "and lower with a probability of" in found.reason


@pytest.mark.parametrize(("octaves", "is_said"), [(-9.0, True), (-1.0, False), (0.0, False), (9.0, True)])
def test_a_rate_that_is_far_off_comes_before_the_batch(octaves, is_said):
    found = verdict(octaves, schedule="constant")

    assert (not -2 <= found.octaves <= 1) == is_said
    assert found.reason.endswith("so set the rate first.") == is_said
    assert far_off(found) == (RateOff(found.factor, found.factor_low, found.factor_high) if is_said else None)
    assert far_off(verdict(octaves, schedule="unknown")) is None, "somebody may have set it, and the path remembers"


def test_a_verdict_says_which_runs_of_ones_own_it_is_read_against():
    lines = coefficients().families["Adam"]
    own = OwnLines(
        tuple(replace(one, offset=one.offset - 1.0) for one in lines.lines["constant"]),
        (),
        "Calibrated here on 3 runs of this task.",
    )
    path = path_with(0.0)

    published, found = (
        rate_verdict(path, optimizer="AdamW", planned_steps=1000, schedule="constant", own=one) for one in (None, own)
    )

    assert (published.calibration, found.calibration) == (None, own.said)
    assert own.said in found.reason
    assert found.octaves > published.octaves
    assert found.ratio == published.ratio


def test_no_more_is_said_than_the_runs_have_shown_that_the_coefficients_come_from():
    assert verdict(-5.0).octaves == -3.0
    assert verdict(5.0).factor == 1 / 8


@pytest.mark.parametrize(
    ("octaves", "said"),
    [(-5.0, "the present one, perhaps far more, and higher"), (5.0, "one, perhaps far less, and lower")],
)
def test_a_rate_that_is_farther_off_is_said_to_be_so_at_least_and_its_interval_reaches_as_far(octaves, said):
    found = verdict(octaves)

    assert said in found.reason
    assert min(found.octaves, found.high) - found.low >= 0
    assert found.low < octaves < found.high
    assert "perhaps far" not in verdict(octaves / 2).reason


def test_near_the_best_rate_it_is_about_right_only_where_that_is_likely():
    """What other tasks leave open is wide: only a late path of a schedule that is known tells it."""
    words = {}
    for family in ("SGD", "momentum", "Adam"):
        optimizer, momentum = ("AdamW", 0.9) if family == "Adam" else ("SGD", 0.9 if family == "momentum" else 0.0)
        for schedule in ("constant", "cosine", "unknown"):
            ratio = telling(0.0, family=family, progress=1.0, schedule=schedule)
            path = path_with(ratio, 1000, momentum)
            found = rate_verdict(path, optimizer=optimizer, planned_steps=1000, schedule=schedule)
            words[family, schedule] = found.verdict
            assert (found.probability >= 0.6) == (found.verdict == "about_right")

    assert "about_right" in words.values()
    assert verdict(0.0, 120).verdict == "unclear"


@pytest.mark.parametrize("num_updates", [10, 49])
def test_nothing_is_said_before_fifty_steps_even_of_a_short_plan(num_updates):
    found = verdict(-2.0, num_updates, planned_steps=100)

    assert found.verdict is None
    assert found.reason == f"{num_updates} steps tell too little: look again after 50."
    assert (found.octaves, found.probability) == (None, None)
    assert found.ratio is not None


def test_nothing_is_said_before_a_tenth_of_the_plan():
    found = verdict(-2.0, 99)

    assert found.verdict is None
    assert found.reason == "10 % of the plan is too early: look again at step 100."
    assert verdict(-2.0, 100).verdict == "too_low"


def test_without_a_plan_progress_is_what_the_advice_on_the_batch_takes_it_for():
    without, at_a_quarter = verdict(-1.5, planned_steps=None), verdict(-1.5)

    assert without.octaves == at_a_quarter.octaves
    assert without.progress is None


def test_a_run_that_has_ended_without_a_plan_is_judged_as_done():
    path = path_with(-0.6, 1000)
    found = rate_verdict(path, optimizer="AdamW", has_ended=True)

    assert found.progress == 1.0
    assert found.octaves == rate_verdict(path, optimizer="AdamW", planned_steps=1000).octaves


def pushed(push, *, ratio=-0.2, sd=0.0, optimizer="AdamW", num_updates=500):
    momentum = 0.0 if optimizer == "SGD" else 0.9
    path = path_with(ratio, num_updates, momentum)._replace(push=None if push is None else Push(push, sd))
    return rate_verdict(path, optimizer=optimizer, planned_steps=1000, schedule="constant")


def test_the_path_ratio_and_the_push_count_alike():
    known = coefficients()
    of_push = known.push_at("Adam", 0.5, "constant")
    by_ratio, by_push = pushed(None).octaves, octaves_of(PathRatio(math.asinh(6 * 0.4), 0.0), of_push.line).mean

    found = pushed(0.4)

    assert found.octaves == pytest.approx((by_ratio + by_push) / 2)
    assert (found.high - found.low) / (2 * 1.959964) == pytest.approx(of_push.both_sd, rel=0.02)
    assert (found.push, found.push_low, found.push_high) == (0.4, 0.4, 0.4)


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_the_more_the_last_half_pushes_on_the_lower_the_rate_is_taken_to_be(optimizer):
    told = [pushed(push, optimizer=optimizer).octaves for push in (-0.8, -0.2, 0.0, 0.5, 3.0)]

    assert told == sorted(told, reverse=True)
    assert told[0] - told[-1] > 1


def test_a_push_that_is_known_less_well_makes_a_verdict_less_sure():
    sure, unsure = pushed(0.1), pushed(0.1, sd=0.5)

    assert unsure.high - unsure.low > sure.high - sure.low
    assert 0 < unsure.octaves < sure.octaves


@pytest.mark.parametrize(
    ("ratio", "push", "said"),
    [
        (-0.5, 2.0, "they push on in one direction, in the last half, too."),
        (-0.5, -0.5, "they push on in one direction, and in the last half they take each other back."),
        (0.5, 0.0, "they take each other back, and in the last half they neither push on nor take each other back."),
    ],
)
def test_the_reason_says_what_the_last_half_did(ratio, push, said):
    assert said in pushed(push, ratio=ratio).reason


def test_muon_has_no_line_of_its_push_and_its_verdict_does_not_speak_of_it():
    path = path_with(-0.3, 600)

    with_push, without = (
        rate_verdict(one, optimizer="Muon", planned_steps=1000) for one in (path._replace(push=Push(3.0, 0.1)), path)
    )

    assert with_push == without


def test_of_lion_nothing_is_said():
    found = verdict(-1.0, optimizer="Lion")

    assert (found.verdict, found.ratio) == (None, None)
    assert found.reason == "How updates of Lion relate to its best learning rate is not known: no verdict."


def test_of_muon_nothing_is_said_before_half_of_the_plan_or_without_one():
    early, late, planless = [
        rate_verdict(path_with(-3.0, steps), optimizer="Muon", planned_steps=planned)
        for steps, planned in ((490, 1000), (500, 1000), (490, None))
    ]

    assert early.reason == "49 % of the plan is too early: look again at step 500."
    assert late.verdict == "too_low"
    assert planless.reason.endswith("no plan is known: planned_steps= says it.")


def test_muons_momentum_counts_as_the_one_that_its_coefficients_were_fitted_with():
    found = rate_verdict(path_with(-0.3, 600)._replace(momentum=0.95), optimizer="Muon", planned_steps=1000)

    assert found.ratio == pytest.approx(-0.3)


@pytest.mark.parametrize(
    ("optimizer", "momentum", "family"),
    [
        ("SGD", 0.0, "SGD"), ("SGD", 0.9, "momentum"), ("Adam", 0.9, "Adam"), ("AdamW", 0.9, "Adam"),
        ("Muon", 0.9, "Muon"), ("Lion", 0.9, None), (None, 0.0, None),
    ],
)  # fmt: skip
def test_an_optimizer_belongs_to_a_family_or_to_none(optimizer, momentum, family):
    assert family_of(optimizer, momentum) == family


def test_a_run_whose_path_is_not_measured_says_how_it_would_be():
    found = rate_verdict(None, optimizer="SGD", planned_steps=1000)

    assert found.verdict is None
    assert "judge_rate=False" in found.reason


def test_an_unknown_optimizer_is_asked_for():
    assert "give it to watch(model, optimizer)" in rate_verdict(path_with(0.0), optimizer=None).reason


def test_the_coefficients_say_where_they_come_from():
    known = coefficients()

    assert "fit_rate_coefficients.py" in known.source
    assert known.date
    assert list(known.progress) == sorted(known.progress)
    for family in known.families.values():
        assert set(family.lines) == {"constant", "cosine", "unknown"}
        for lines in family.lines.values():
            assert len(lines) == len(known.progress)
            assert all(line.slope > 0 and line.scatter > 0 for line in lines)
    for name in ("SGD", "momentum", "Adam"):
        assert set(known.families[name].pushes) == {"constant", "cosine", "unknown"}
        for pushes in known.families[name].pushes.values():
            assert len(pushes) == len(known.progress)
            assert all(one.line.slope < 0 < one.both_sd for one in pushes)
    assert coefficients() is known


def test_between_known_shares_of_the_plan_lines_are_straight_in_the_logarithm():
    known = coefficients()
    half = known.line_at("Adam", math.sqrt(0.25 * 0.5), "unknown")
    ends = [known.line_at("Adam", progress, "unknown") for progress in (0.25, 0.5)]

    assert half.slope == pytest.approx((ends[0].slope + ends[1].slope) / 2)
    assert known.line_at("Adam", 0.01, "unknown") == known.line_at("Adam", 0.12, "unknown")
    assert known.line_at("Adam", 1.0, "unknown") == known.families["Adam"].lines["unknown"][-1]


def rates(of_step, num_steps, every=10):
    return [(step, of_step(step)) for step in range(0, num_steps, every)]


def cosine(step, peak=0.1, warm_up=60, planned=1000):
    if step < warm_up:
        return peak * (step + 1) / warm_up
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (planned - warm_up)))


def test_a_rate_that_stays_after_its_warm_up_is_constant():
    assert schedule_of(rates(lambda step: min(1.0, (step + 1) / 60), 250), 1000) == "constant"


@pytest.mark.parametrize("num_steps", [150, 250, 500, 990])
def test_a_cosine_is_told_by_its_fall_along_the_plan(num_steps):
    assert schedule_of(rates(cosine, num_steps), 1000) == "cosine"


def test_a_cosine_without_a_plan_a_line_and_a_warm_up_are_unknown():
    assert schedule_of(rates(cosine, 500), None) == "unknown"
    assert schedule_of(rates(lambda step: 1 - step / 1000, 250), 1000) == "unknown"
    assert schedule_of(rates(lambda step: (step + 1) / 60, 60), 1000) == "unknown"
    assert schedule_of([], 1000) == "unknown"
    assert schedule_of([(0, 0.0), (10, 0.0)], 1000) == "unknown"
