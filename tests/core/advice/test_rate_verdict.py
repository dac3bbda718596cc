"""The verdict on a learning rate: its posterior by simulation, its words and odds, and when nothing is said."""

import math
import random

import pytest

from noisescale_core.advice.rate_coefficients import coefficients
from noisescale_core.advice.rate_schedule import schedule_of
from noisescale_core.advice.rate_verdict import octaves_of, rate_verdict
from noisescale_core.estimators.path import Path, PathRatio, path_ratio, sketch_error, walk_factor


def path_with(octaves, num_updates=250, momentum=0.9):
    """A path whose ratio is so many octaves."""
    return Path(num_updates, 4.0**octaves / walk_factor(momentum, num_updates), 0.0, 1.0, momentum)


def verdict(octaves=0.0, num_updates=250, momentum=0.9, **changes):
    asked = {"optimizer": "AdamW", "planned_steps": 1000, **changes}
    return rate_verdict(path_with(octaves, num_updates, momentum), **asked)


def test_a_path_is_made_with_the_ratio_that_a_test_asks_for():
    assert path_ratio(path_with(-0.3)).value == pytest.approx(-0.3)


@pytest.mark.parametrize("schedule", ["unknown", "constant", "cosine"])
@pytest.mark.parametrize("progress", [0.06, 0.12, 0.25, 0.5])
def test_what_is_known_of_the_rate_is_the_regression_of_simulated_runs(progress, schedule):
    """Runs drawn as the file says: y from the prior, q on the line with its scatter and the sketch's error."""
    line, prior = coefficients().line_at(progress, schedule), coefficients().prior_sd
    rng, error = random.Random(7), sketch_error() / (2 * math.log(2))
    left = []
    for _ in range(20_000):
        y = rng.gauss(0, prior)
        q = line.offset + line.slope * y + rng.gauss(0, line.scatter) + rng.gauss(0, error)
        found = octaves_of(PathRatio(q, error), line).mean
        if abs(found) < 3:  # beyond which less is said than is found
            left.append(y - found)

    rms = math.sqrt(sum(one * one for one in left) / len(left))
    exact = 1 / math.sqrt(1 / prior**2 + line.slope**2 / (line.scatter**2 + error**2))
    assert rms == pytest.approx(exact, rel=0.03)
    assert abs(sum(left) / len(left)) < 5 * exact / math.sqrt(len(left))
    # what other tasks left open is a little more
    assert exact * 0.99 <= octaves_of(PathRatio(0.0, error), line).sd <= exact * 1.08


def test_a_worse_measurement_says_less_and_is_less_sure():
    line = coefficients().line_at(0.25, "unknown")

    sure, unsure = octaves_of(PathRatio(-0.4, 0.0), line), octaves_of(PathRatio(-0.4, 0.3), line)

    assert sure.mean < unsure.mean < 0
    assert unsure.sd > sure.sd
    assert sure.sd == pytest.approx(line.sd)


@pytest.mark.parametrize(
    ("octaves", "word"),
    [
        (-0.45, "too_low"),
        (-0.22, "perhaps_too_low"),
        (0.0, "about_right"),
        (0.22, "perhaps_too_high"),
        (0.45, "too_high"),
    ],
)
def test_the_word_follows_the_ratio(octaves, word):
    found = verdict(octaves)

    assert found.verdict == word
    assert found.headline == f"Learning rate: {word.replace('_', ' ')}"


def test_a_rate_that_is_too_low_is_told_by_how_much_with_interval_and_odds():
    found = verdict(-0.45)

    assert found.octaves < -1
    assert found.factor == pytest.approx(2**-found.octaves)
    assert found.factor_low < found.factor < found.factor_high
    assert (found.factor_low, found.factor_high) == (pytest.approx(2**-found.high), pytest.approx(2**-found.low))
    assert found.probability > 0.9
    assert found.ratio_low < found.ratio == pytest.approx(-0.45)
    assert "1.4 × as far as a random walk" in found.reason
    assert "they push on in one direction" in found.reason
    assert "and higher with a probability of 9" in found.reason


def test_a_rate_that_is_too_high_is_told_to_be_lowered():
    found = verdict(0.45)

    assert found.factor < 1
    assert "they take each other back" in found.reason
    assert "and lower with a probability of" in found.reason


def test_no_more_is_said_than_the_runs_have_shown_that_the_coefficients_come_from():
    assert verdict(-3.0).octaves == -3.0
    assert verdict(3.0).factor == 1 / 8


def test_early_in_a_plan_a_ratio_near_zero_is_about_right_only_where_that_is_likely():
    assert verdict(0.0, 500).verdict == "about_right"
    assert verdict(0.1, 120).verdict == "unclear"


@pytest.mark.parametrize("num_updates", [10, 49])
def test_nothing_is_said_before_fifty_steps_even_of_a_short_plan(num_updates):
    found = verdict(-1.0, num_updates, planned_steps=100)

    assert found.verdict is None
    assert found.reason == f"{num_updates} steps tell too little: look again after 50."
    assert (found.octaves, found.probability) == (None, None)
    assert found.ratio == pytest.approx(-1.0)


def test_nothing_is_said_before_a_tenth_of_the_plan():
    found = verdict(-1.0, 99)

    assert found.verdict is None
    assert found.reason == "10 % of the plan is too early: look again at step 100."
    assert verdict(-1.0, 100).verdict == "too_low"


def test_without_a_plan_progress_is_what_the_advice_on_the_batch_takes_it_for():
    without, at_a_quarter = verdict(-0.45, planned_steps=None), verdict(-0.45)

    assert without.octaves == at_a_quarter.octaves
    assert without.progress is None


def test_a_run_that_has_ended_without_a_plan_is_judged_as_done():
    found = verdict(-0.45, planned_steps=None, has_ended=True)

    assert found.progress == 1.0
    assert found.octaves == pytest.approx(verdict(-0.45, 1000).octaves)


def test_of_lion_nothing_is_said():
    found = verdict(-1.0, optimizer="Lion")

    assert (found.verdict, found.ratio) == (None, None)
    assert found.reason == "How updates of Lion relate to its best learning rate is not known: no verdict."


def test_of_muon_nothing_is_said_before_half_of_the_plan_or_without_one():
    early = verdict(-0.8, 490, optimizer="Muon")
    late = verdict(-0.8, 500, optimizer="Muon", momentum=0.95)
    planless = verdict(-0.8, 490, optimizer="Muon", planned_steps=None)

    assert early.reason == "49 % of the plan is too early: look again at step 500."
    assert late.verdict == "too_low"
    assert planless.reason.endswith("no plan is known: planned_steps= says it.")


def test_muons_momentum_counts_as_the_one_that_its_coefficients_were_fitted_with():
    found = rate_verdict(path_with(-0.3, 600)._replace(momentum=0.95), optimizer="Muon", planned_steps=1000)

    assert found.ratio == pytest.approx(-0.3)


def test_a_run_whose_path_is_not_measured_says_how_it_would_be():
    found = rate_verdict(None, optimizer="SGD", planned_steps=1000)

    assert found.verdict is None
    assert "judge_rate=False" in found.reason


def test_an_unknown_optimizer_is_asked_for():
    assert "give it to watch(model, optimizer)" in rate_verdict(path_with(0.0), optimizer=None).reason


def test_the_coefficients_say_where_they_come_from():
    known = coefficients()

    assert "204 runs" in known.source
    assert known.date
    assert list(known.progress) == sorted(known.progress)
    assert {len(lines) for lines in known.lines.values()} == {len(known.progress)}
    assert coefficients() is known


def test_between_known_shares_of_the_plan_lines_are_straight_in_the_logarithm():
    known = coefficients()
    half = known.line_at(math.sqrt(0.25 * 0.5), "unknown")

    assert half.slope == pytest.approx((0.175 + 0.22) / 2)
    assert known.line_at(0.01, "unknown").slope == 0.075
    assert known.line_at(1.0, "unknown").slope == 0.22


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
