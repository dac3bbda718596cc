import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import temperature
from noisescale_core.theory.temperature import LEARNING_RATE_ALONE, TEMPERATURE_ALONE, Exponents


def test_sixteen_times_colder_reads_sixteen_times_the_noise_scale():
    """SVHN from ε = 0.18, B = 128: McCandlish et al. 2018, appendix C."""
    warm = {"learning_rate": 0.18, "batch": 128.0}
    cold = {"learning_rate": 0.18 / 4, "batch": 4 * 128.0}

    found = temperature.lr_normalised(
        noise_scale=16 * 500, **cold, reference_learning_rate=0.18, reference_batch=128, exponents=TEMPERATURE_ALONE
    )

    assert temperature.temperature(**warm) == pytest.approx(16 * temperature.temperature(**cold))
    assert found == pytest.approx(500)


def test_where_the_batch_moves_nothing_only_the_learning_rate_is_normalised():
    found = temperature.lr_normalised(
        noise_scale=800,
        learning_rate=0.1,
        batch=64,
        reference_learning_rate=0.4,
        reference_batch=1,
        exponents=LEARNING_RATE_ALONE,
    )

    assert found == pytest.approx(200)


@given(g=st.floats(-2, 0), h=st.floats(-1, 2), rate=st.floats(1e-5, 1), batch=st.floats(1, 1e4))
def test_normalising_recovers_a_noise_scale_made_by_the_same_exponents(g, h, rate, batch):
    measured = 700 * (rate / 0.01) ** g * (batch / 64) ** h

    found = temperature.lr_normalised(
        noise_scale=measured,
        learning_rate=rate,
        batch=batch,
        reference_learning_rate=0.01,
        reference_batch=64,
        exponents=Exponents(g, h, "made up"),
    )

    assert found == pytest.approx(700)


@given(batch=st.floats(1, 1e6), noise_scale=st.floats(1, 1e6))
def test_the_best_learning_rate_of_any_batch_has_the_same_relative_temperature(batch, noise_scale):
    best = 0.27 * batch / (noise_scale + batch)

    assert temperature.relative_temperature(
        learning_rate=best, best_of_huge_batches=0.27, batch=batch, noise_scale=noise_scale
    ) == pytest.approx(1)


def test_windows_below_a_tenth_of_the_peak_are_left_out_at_both_ends():
    rates = [0.0, 0.05, 0.5, 1.0, 0.5, 0.11, 0.09]

    assert temperature.windows_to_use(rates) == [False, False, True, True, True, True, False]
    assert temperature.windows_to_use([0.09, 0.2], peak_learning_rate=1.0) == [False, True]
    assert temperature.windows_to_use([3.0, 0.31, 0.29]) == [True, True, False]


def test_drops_of_the_learning_rate_are_found_where_they_happen():
    found = temperature.drops([0.1, 0.1, 0.01, 0.009, 0.001, 0.1])

    assert [(drop.position, round(drop.factor, 3)) for drop in found] == [(2, 0.1), (4, 0.111)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: temperature.temperature(learning_rate=0, batch=8), "learning_rate must be .* at rest there is no"),
        (lambda: temperature.windows_to_use([]), "learning_rates must not be empty"),
        (lambda: temperature.windows_to_use([0.0]), "peak_learning_rate must be positive and finite, got 0: give"),
        (lambda: temperature.drops([1, 1], by=1), "by must exceed 1, got 1: 2 marks halvings"),
        (
            lambda: temperature.lr_normalised(
                noise_scale=9,
                learning_rate=0,
                batch=1,
                reference_learning_rate=1,
                reference_batch=1,
                exponents=TEMPERATURE_ALONE,
            ),
            "learning_rate must be positive and finite, got 0: leave out windows at rest",
        ),
    ],
)
def test_a_temperature_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
