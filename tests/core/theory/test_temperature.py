import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import temperature
from noisescale_core.theory.temperature import LEARNING_RATE_ALONE, TEMPERATURE_ALONE, Exponents


def test_sixteen_times_colder_reads_sixteen_times_the_noise_scale():
    """SVHN from ε = 0.18, B = 128: McCandlish et al. 2018, appendix C."""
    cold = {"learning_rate": 0.18 / 4, "batch": 4 * 128.0}

    found = temperature.lr_normalised(
        noise_scale=16 * 500, **cold, reference_learning_rate=0.18, reference_batch=128, exponents=TEMPERATURE_ALONE
    )

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


def test_windows_below_a_tenth_of_the_peak_are_left_out_at_both_ends():
    rates = [0.0, 0.05, 0.5, 1.0, 0.5, 0.11, 0.09]

    assert temperature.windows_to_use(rates) == [False, False, True, True, True, True, False]
    assert temperature.windows_to_use([0.09, 0.2], peak_learning_rate=1.0) == [False, True]
    assert temperature.windows_to_use([3.0, 0.31, 0.29]) == [True, True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: temperature.windows_to_use([]), "learning_rates must not be empty"),
        (lambda: temperature.windows_to_use([0.0]), "peak_learning_rate must be positive and finite, got 0: give"),
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
