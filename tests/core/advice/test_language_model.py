"""The batch of a language model before its first step, as an answer like any other."""

import pytest

from noisescale_core.advice.language_model import PlannedModel, recommend
from noisescale_core.advice.question import Question
from noisescale_core.errors import DomainError
from noisescale_core.theory.language_models import LanguageModel, advise

SEQUENCE = 2048


def test_batches_are_in_examples_and_the_answer_is_that_of_the_law():
    law = advise(LanguageModel(20e9))

    found = recommend(PlannedModel(tokens=20e9, sequence_length=SEQUENCE), Question())

    assert (found.decision, found.headline) == ("start", "Start with 1,024")
    assert (found.unit, found.example, found.units_per_example) == ("tokens", "sequence", 2048.0)
    ends = (found.interval.value, found.interval.low, found.interval.high)
    assert ends == pytest.approx([one / SEQUENCE for one in (law.batch.value, law.batch.low, law.batch.high)])
    assert found.critical_batch.value == pytest.approx(law.critical.value / SEQUENCE)
    assert "23 published points" in found.reason
    assert [one.preference for one in found.otherwise] == [0.2, 0.8]
    assert [one.code for one in found.warnings] == ["rate_not_known"]


def test_a_price_in_examples_is_one_in_tokens():
    in_sequences = recommend(
        PlannedModel(tokens=20e9, sequence_length=SEQUENCE), Question(examples_per_step=1e6 / SEQUENCE)
    )
    in_tokens = recommend(PlannedModel(tokens=20e9), Question(examples_per_step=1e6))

    assert in_sequences.interval.value * SEQUENCE == pytest.approx(in_tokens.interval.value)
    assert in_tokens.exchange_rate.source == "examples_per_step"
    assert in_sequences.otherwise == ()


def test_silence_and_no_preference_are_the_same_question():
    planned = PlannedModel(tokens=20e9)

    assert recommend(planned, Question()) == recommend(planned, Question(preference=0.5))


def test_a_size_alone_assumes_its_tokens_and_far_from_all_points_it_says_so():
    found = recommend(PlannedModel(params=1e11), Question())

    assert "2 T tokens planned, assumed: 20 a parameter" in found.reason
    assert [one.code for one in found.warnings] == ["extrapolated", "rate_not_known"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "tokens is missing"),
        ({"tokens": 1e9, "optimizer": "Muon"}, "optimizer must be one of adam and adamw, got 'Muon'"),
        ({"tokens": 1e9, "sequence_length": 0}, "sequence_length must be at least 1, got 0"),
        ({"params": 0.5}, "params must be at least 1, got 0.5"),
        ({"tokens": "4e9"}, "tokens must be a number, got '4e9'"),
        ({"tokens": True}, "tokens must be a number, got True"),
        ({"params": "1b"}, "params must be a number, got '1b'"),
        ({"tokens": 1e9, "sequence_length": 2.5}, "sequence_length must be a whole number of tokens, got 2.5"),
    ],
)
def test_what_no_published_run_answers_is_refused(said, message):
    with pytest.raises(DomainError, match=message):
        PlannedModel(**said)


def test_a_limit_needs_a_run():
    with pytest.raises(DomainError, match="max_hours needs a run that has begun"):
        recommend(PlannedModel(tokens=1e9), Question(max_hours=3.0))
