"""What a project takes for granted fills gaps, overrides nothing, and is said."""

import pytest

from advised_runs import KNOWN, advised_run, stretch
from noisescale_core.advice.defaults import NO_DEFAULTS, Defaults, filled, price_sentence
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.question import FIELDS, NOTHING_ASKED, Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.errors import ConfigError, DomainError

TIMED = [stretch(128.0, 10 * 2.28)] * 6 + [stretch(256.0, 10 * 3.56)] * 6


def advised(defaults, asked=NOTHING_ASKED, **run):
    return recommend(advised_run(**run), Measured(KNOWN), filled(asked, defaults, own_price=3.0))


def texts(found):
    return {one.code: one.text for one in found.warnings}


def test_a_worth_that_only_the_project_says_is_taken_and_said_to_be_the_projects():
    as_said = recommend(advised_run(), Measured(KNOWN), Question(examples_per_step=300.0))

    found = advised(Defaults(examples_per_step=300.0))

    assert found.recommended_batch_size == as_said.recommended_batch_size
    assert found.exchange_rate.source == "examples_per_step"
    assert found.exchange_rate.text == "assumes that a step saved is worth 300 examples (project default)"
    assert "Assumes that a step saved is worth 300 examples (project default)" in texts(found)["no_price"]
    assert found.otherwise, "the reader has not spoken: what others would take is told"


def test_what_the_reader_says_wins_over_the_project():
    asked = Question(preference=0.2)

    assert filled(asked, Defaults(examples_per_step=300.0), own_price=None) == asked
    assert filled(asked, Defaults(fixed_hardware=True), own_price=None) == asked


def test_a_balanced_preference_of_the_project_is_balanced_also_where_step_times_are_known():
    found = advised(Defaults(preference=0.5), spent=TIMED)

    assert found.exchange_rate.text == "assumes that 1 % of the steps is worth 1 % of the examples (project default)"
    assert found.interval.value == pytest.approx(found.critical_batch.value, rel=0.05)


def test_fixed_hardware_of_the_project_takes_its_price_from_step_times():
    found = advised(Defaults(fixed_hardware=True), spent=TIMED)
    as_said = recommend(advised_run(spent=TIMED), Measured(KNOWN), Question(fixed_hardware=True))

    assert found.exchange_rate.examples_per_step == pytest.approx(as_said.exchange_rate.examples_per_step)
    assert found.exchange_rate.source == "fixed_hardware"
    assert found.exchange_rate.text.endswith("(project default)")


def test_a_run_whose_step_times_say_nothing_is_advised_all_the_same_on_fixed_hardware():
    found = advised(Defaults(fixed_hardware=True))

    assert found.recommended_batch_size is not None
    assert found.exchange_rate.source == "preference"
    assert found.exchange_rate.text == "assumes that time and data matter equally"


def test_the_price_of_a_device_is_taken_where_the_run_has_none():
    said = Defaults(device_hour_price=2.0, currency="EUR", usd_per_unit=1.1)

    own = filled(NOTHING_ASKED, said, own_price=3.0)
    asked = filled(Question(usd_per_device_hour=4.0), said, own_price=None)
    found = filled(NOTHING_ASKED, said, own_price=None)

    assert (own.usd_per_device_hour, asked.usd_per_device_hour) == (None, 4.0)
    assert found.usd_per_device_hour == pytest.approx(2.2)
    assert price_sentence(found) == "Money assumes 2 EUR (2.2 USD) a device-hour (project default)."
    assert price_sentence(own) is price_sentence(asked) is None


def test_a_recommendation_says_that_its_money_is_the_projects():
    asked = filled(NOTHING_ASKED, Defaults(device_hour_price=2.5), own_price=None)

    found = recommend(advised_run(), Measured(KNOWN), asked)

    assert texts(found)["price_of_project"] == "Money assumes 2.5 USD a device-hour (project default)."


def test_a_reader_without_a_preference_has_said_nothing():
    said = Defaults(examples_per_step=300.0)

    balanced = filled(Question(preference=0.5), said, own_price=None)

    assert balanced == filled(NOTHING_ASKED, said, own_price=None)
    assert filled(Question(preference=0.5), NO_DEFAULTS, own_price=None) == Question(preference=0.5)


def test_a_project_that_says_nothing_changes_nothing():
    assert filled(NOTHING_ASKED, NO_DEFAULTS, own_price=None) == NOTHING_ASKED


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"preference": 0.5, "fixed_hardware": True}, "each say what a step is worth"),
        ({"preference": 0.5, "examples_per_step": 3.0}, "each say what a step is worth"),
        ({"usd_per_unit": 1.1}, "usd_per_unit must be 1 for USD, got 1.1"),
    ],
)
def test_defaults_that_contradict_each_other_are_refused(said, message):
    with pytest.raises(DomainError, match=message):
        Defaults(**said)


def test_no_reader_says_what_the_project_says():
    assert "project_says" not in FIELDS
    with pytest.raises(ConfigError, match="takes no 'project_says'"):
        Question.of({"project_says": {"preference": "x"}})
