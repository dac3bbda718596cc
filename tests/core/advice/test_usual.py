"""What is usual of a critical batch: near the batch in use, and for language models what their planned tokens say."""

import math
from dataclasses import replace

import pytest

from advised_runs import RESOLVED
from noisescale_core.advice.evidence.critical_belief import law_of, near, planned_tokens
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.parts.parts import RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import decide, recommend
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_core.theory.language_models import LanguageModel

LENGTH = 2048.0
GPT = RunSoFar(
    noise_scale=NOTHING_MEASURED,
    batch_size=128.0,
    optimizer="AdamW",
    example="sequence",
    unit="tokens",
    family="language",
    units_per_example=LENGTH,
    planned_steps=76_294,
)
"""20e9 tokens planned, and nothing measured."""


def test_the_law_takes_the_planned_tokens_and_answers_in_examples():
    law = law_of(GPT)

    assert law.tokens == pytest.approx(20e9, rel=1e-4)
    model = LanguageModel(law.tokens)
    assert math.exp(law.usual.log_mean) == pytest.approx(model.critical_batch(128 * LENGTH) / LENGTH)
    assert law.usual.log_scale == model.uncertainty
    assert law.floor == pytest.approx(model.floor / LENGTH)


@pytest.mark.parametrize(
    "changes",
    [
        {"family": None},
        {"family": "fine-tuning"},
        {"family": "vision"},
        {"unit": "images"},
        {"optimizer": "SGD"},
        {"optimizer": None},
        {"planned_steps": None},
        {"batch_size": None},
        {"planned_steps": 10**18},
    ],
)
def test_no_law_speaks_of_what_is_not_said_to_be_a_planned_language_model(changes):
    run = replace(GPT, **changes)

    assert planned_tokens(run) is None
    assert law_of(run) is None
    assert recommend(run).decision == "insufficient_evidence"


def test_a_floor_is_known_only_where_best_batches_are_published():
    assert law_of(replace(GPT, planned_steps=1000)).floor == 0


def test_a_planned_language_model_is_answered_before_its_first_step_in_any_unit():
    answer = recommend(GPT)
    as_tokens = replace(GPT, batch_size=128 * LENGTH, units_per_example=1.0, example="token")

    assert (answer.decision, answer.headline) == ("increase", "Raise the batch to 1,024")
    assert "by published language models of as many tokens the critical batch is" in answer.reason
    assert answer.odds.assumes.endswith("nothing is measured yet.")
    assert decide(GPT).reason == answer.reason
    assert recommend(as_tokens).odds.probability == pytest.approx(answer.odds.probability, abs=0.01)
    said = next(one.text for one in answer.warnings if one.code == "law_of_language_models")
    assert "20 G tokens planned" in said
    assert "family='fine-tuning'" in said


def test_what_is_measured_overrules_the_law():
    small = replace(RESOLVED, value=4.0, low=3.5, high=4.5)
    measured = replace(GPT, noise_scale=small, steps_done=50_000)

    with_law, without = (Measured().critical(one).estimate.value for one in (measured, replace(measured, family=None)))

    law = math.exp(law_of(GPT).usual.log_mean)
    assert without < with_law < law / 10


def test_the_law_narrows_a_noise_scale_that_says_the_same():
    like = replace(RESOLVED, value=1200.0, low=1000.0, high=1400.0)
    measured = replace(GPT, noise_scale=like, steps_done=30_000)

    widths = []
    for run in (measured, replace(measured, family=None)):
        interval = Measured().critical(run).estimate.interval
        widths.append(math.log(interval.high / interval.low))
    assert widths[0] < 0.8 * widths[1]


def test_no_batch_below_the_floor_is_recommended():
    cheap = recommend(GPT, asked=Question(preference=0.02))

    assert cheap.interval.value == law_of(GPT).floor


def test_a_normal_density_is_that_of_its_spread():
    usual = near(100.0)

    far = usual.log_density(math.log(100.0) + 2 * usual.log_scale) - usual.log_density(math.log(100.0))
    assert far == pytest.approx(-2.0)
