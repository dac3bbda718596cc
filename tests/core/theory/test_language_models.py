"""The batch of a language model before its first step, against published sweeps and points."""

import math
import statistics

import numpy as np
import pytest

from noisescale_core.advice.words.of_language_models import said
from noisescale_core.errors import DomainError
from noisescale_core.theory.language_models import NUM_POINTS, LanguageModel, advise, ramp_gain
from published_language_models import PRICES, points, regret, sweeps


def test_the_points_that_the_law_is_said_to_rest_on_are_there():
    assert len(points()) == NUM_POINTS


def test_every_verified_point_lies_in_the_interval_of_the_law():
    """Each is given with the tokens to its loss at a small batch: so are the planned tokens, at no batch."""
    inside = []
    for tokens, critical in points():
        model = LanguageModel(tokens)
        centre = model.critical_batch(0.0)
        reach = advise(model).critical.high / advise(model).critical.value
        inside.append(centre / reach < critical < centre * reach)
        assert reach < 4.5

    assert sum(inside) >= 0.95 * len(inside)


def test_the_tokens_to_the_loss_at_a_small_batch_are_those_of_the_law():
    model = LanguageModel(2e10)

    critical = model.critical_batch(1e6)

    assert critical == pytest.approx(2.2e6 * (2e10 / (1 + 1e6 / critical) / 1e10) ** 0.436, rel=1e-12)
    assert model.critical_batch(0.0) == pytest.approx(2.2e6 * 2**0.436)


@pytest.mark.parametrize(("off", "median", "ninth"), [((1.0,), 2.0, 6.0), ((0.25, 4.0), 10.0, 20.0)])
def test_the_batch_advised_before_step_0_costs_little_on_published_sweeps(off, median, ninth):
    regrets = [
        regret(sweep, price, advise(LanguageModel(sweep.planned(price)), tokens_per_step=price * factor).batch.value)
        for sweep in sweeps()
        for price in (share * sweep.critical for share in PRICES)
        for factor in off
    ]

    assert 100 * statistics.median(regrets) < median
    assert 100 * float(np.quantile(regrets, 0.9)) < ninth


def test_a_stated_price_moves_the_batch_with_its_root_above_the_floor():
    model = LanguageModel(2e10)

    dear, cheap = (advise(model, tokens_per_step=price) for price in (1e8, 1e3))

    assert dear.batch.value == pytest.approx(math.sqrt(1e8 * dear.critical.value + model.floor**2), rel=0.2)
    assert cheap.batch.value == pytest.approx(model.floor, rel=0.02)


@pytest.mark.parametrize("price", [1.0, 1e3, 1e6, 1e8, 1e10])
@pytest.mark.parametrize("tokens", [1e8, 1e9, 2e10, 1e13])
def test_the_batch_lies_in_its_own_interval(tokens, price):
    batch = advise(LanguageModel(tokens), tokens_per_step=price).batch

    assert batch.low * 0.999 <= batch.value <= batch.high * 1.001


def test_silence_and_a_half_are_the_same_question():
    assert advise(LanguageModel(2e10)) == advise(LanguageModel(2e10), preference=0.5)


def test_who_values_steps_more_gets_a_larger_batch():
    batches = [advise(LanguageModel(2e10), preference=preference).batch.value for preference in (0.2, 0.5, 0.8)]

    assert batches == sorted(batches)


@pytest.mark.parametrize(("tokens", "is_extrapolated"), [(1e8, True), (2e10, False), (1e13, True)])
def test_beyond_the_published_points_the_interval_widens_and_it_is_said(tokens, is_extrapolated):
    model = LanguageModel(tokens)

    found = advise(model)

    usual = advise(LanguageModel(2e10)).critical
    assert found.is_extrapolated == is_extrapolated
    assert (found.critical.high / found.critical.value > 1.2 * usual.high / usual.value) == is_extrapolated
    assert any("extrapolated" in line for line in said(model)) == is_extrapolated


def test_a_mixture_of_experts_has_its_own_offset_and_is_known_less():
    dense, mixture = (LanguageModel(1e10, is_mixture=is_mixture) for is_mixture in (False, True))

    assert mixture.critical_batch(0.0) == pytest.approx(2.65 * dense.critical_batch(0.0))
    assert mixture.uncertainty > dense.uncertainty


def test_the_expected_regret_lies_below_that_of_the_worst_case_in_twenty():
    found = advise(LanguageModel(2e10))

    assert 0 < found.regret < found.regret_in_20


def test_the_answer_says_batch_risk_sources_and_rate():
    text = "\n".join(said(LanguageModel(2e10), sequence_length=2048))

    assert text.startswith("batch      2.3 M [820 k, 9.5 M] tokens = 1,100 sequences of 2,048, steps weigh 0.5")
    assert "if money matters" in text
    assert "23 published points (Zhang et al. 2024, Step Law 2025, MLPerf)" in text
    assert "not known before the run" in text


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"tokens_per_step": 0.0}, "tokens_per_step must be positive"),
        ({"preference": 1.0}, "preference must be between 0 and 1"),
        ({"preference": math.nan}, "preference must be between 0 and 1"),
    ],
)
def test_what_is_no_price_is_refused(asked, message):
    with pytest.raises(DomainError, match=message):
        advise(LanguageModel(2e10), **asked)


@pytest.mark.parametrize("tokens", [0.5, 1e19, 1e300])
def test_more_tokens_than_there_are_are_refused(tokens):
    with pytest.raises(DomainError, match="tokens must lie between 1 and 1e"):
        LanguageModel(tokens)
    with pytest.raises(DomainError, match="tokens_per_step must lie between 1 and 1e"):
        advise(LanguageModel(2e10), tokens_per_step=tokens)


@pytest.mark.parametrize("tokens", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_number_of_tokens_is_refused(tokens):
    with pytest.raises(DomainError, match="tokens must be positive"):
        LanguageModel(tokens)


@pytest.mark.parametrize("growth", [0.0, 0.42, 0.44, 0.68])
@pytest.mark.parametrize("price_ratio", [0.01, 1.0, 25.0])
def test_what_a_ramp_saves_is_what_following_the_noise_scale_saves_summed_over_the_tokens(growth, price_ratio):
    root = (np.arange(20_000) + 0.5) / 20_000
    noise_scale, tokens = root ** (4 * growth), 4 * root**3 / 20_000  # the beginning, where φ is small, in fine steps
    inverse = float(tokens @ (1 / noise_scale))  # of B_crit
    price = price_ratio / inverse
    batch = math.sqrt(price / inverse)

    constant = tokens @ ((1 + batch / noise_scale) * (1 + price / batch))
    following = tokens @ (1 + np.sqrt(price / noise_scale)) ** 2

    assert ramp_gain(growth, price_ratio) == pytest.approx(1 - following / constant, abs=1e-3)


def test_a_ramp_is_worth_most_where_steps_and_tokens_weigh_alike():
    balanced, cheap = (advise(LanguageModel(20e9), preference=weight).ramp_gain for weight in (0.5, 0.1))

    assert balanced.value == pytest.approx(0.02, abs=0.002)
    assert balanced.low < balanced.value < balanced.high < 0.08
    assert cheap.high < balanced.high
