"""The reason in one short sentence, and the odds of a change as a word."""

import re

import pytest

from advised_runs import KNOWN, advised_run, stretch
from noisescale_core.advice.decision import sureness_of
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.limited import Inside
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.theory.expected_cost import Stake
from noisescale_core.theory.limits import Choice
from plain_runs import run, unresolved

BALANCED = Question()
TERMS = re.compile(r"noise scale|critical|κ|φ|tr Σ|\|G\|")


@pytest.mark.parametrize("batch", [1, 8, 32, 100, 512, 768, 1024, 2048, 65_536, 1_000_000])
def test_a_run_with_an_answer_has_a_short_reason_without_a_term_or_an_exponent(batch):
    answer = recommend(run(batch_size=batch), asked=BALANCED)

    assert answer.recommended_batch_size is not None
    assert len(answer.short_reason) <= 90
    assert not TERMS.search(answer.short_reason)
    assert not re.search(r"\de[+-]", answer.short_reason)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (1, "1 looks about 770 × too small."),
        (32, "32 looks about 48 × too small."),
        (512, "512 looks about 4 × too small."),
        (65_536, "65,536 looks about 16 × too large."),
    ],
)
def test_a_change_says_how_far_off_the_batch_looks(batch, said):
    answer = recommend(run(batch_size=batch, steps_done=1000), asked=BALANCED)

    assert answer.short_reason == said


@pytest.mark.parametrize(
    ("batch", "examples_per_step", "said"),
    [
        (384, 2.0, r"Steps are cheap here: 384 looks \d+ × too large\."),
        (4096, 1e6, r"Steps are costly here: 4,096 looks [\d.]+ × too small\."),
        (65_536, 1000.0, r"65,536 looks about \d+ × too large\."),
    ],
)
def test_a_batch_that_its_noise_scale_speaks_for_is_off_by_what_steps_cost(batch, examples_per_step, said):
    answer = recommend(run(batch_size=batch, steps_done=1000), asked=Question(examples_per_step=examples_per_step))

    assert re.fullmatch(said, answer.short_reason)


def test_a_weight_of_steps_against_data_is_no_price():
    answer = recommend(run(batch_size=384, steps_done=1000), asked=Question(preference=0.02))

    assert answer.short_reason.startswith("384 looks about ")


@pytest.mark.parametrize(
    ("probability", "word"), [(0.99, "sure"), (0.95, "sure"), (0.949, "likely"), (0.8, "likely"), (0.6, "probably")]
)
def test_the_word_for_the_odds_is_never_surer_than_they_are(probability, word):
    at_stake = Stake(probability, saving=0.3, worst_case=0.1, present_regret=0.5, regret=0.05)
    free = Inside(Choice(1024.0, (), ()), None, None, 1024, None, ())

    assert sureness_of("increase", at_stake, now=256.0, inside=free) == word
    assert sureness_of("keep", at_stake, now=256.0, inside=free) is None


def test_the_answer_carries_the_word_that_its_odds_have():
    for batch in (8, 64, 256, 512, 900, 2048, 16_384):
        answer = recommend(run(batch_size=batch, steps_done=1000), asked=BALANCED)

        is_change = answer.decision.endswith(("increase", "decrease"))
        assert (answer.sureness is not None) == is_change
        if is_change:
            least = {"sure": 0.95, "likely": 0.8, "probably": 0.6}[answer.sureness]
            assert answer.odds.probability >= least


def test_where_a_limit_binds_the_short_reason_is_the_limit():
    limited = Question(examples_per_step=4000.0, examples_per_device=64, max_micro_batches=1)
    answer = recommend(advised_run(), Measured(KNOWN), limited)

    assert answer.headline == "Raise the batch to 512, your memory limit"
    assert answer.short_reason == "Memory allows a batch of 512; accumulating micro-batches allows more."


def test_a_kept_batch_says_what_another_would_save_at_most():
    answer = recommend(advised_run(batch_size=900.0, spent=[stretch(900.0)] * 50), Measured(KNOWN), BALANCED)

    assert answer.decision == "keep"
    assert answer.sureness is None
    assert re.fullmatch(r"Another batch would save [\d.]+ % or less\.", answer.short_reason)


def test_where_nothing_is_recommended_the_short_reason_is_the_reason():
    for answer in (
        recommend(run(estimate=unresolved()), asked=BALANCED),
        recommend(run(divergence=Divergence(101, loss=True, gradients=True)), asked=BALANCED),
    ):
        assert answer.short_reason == answer.reason != ""
