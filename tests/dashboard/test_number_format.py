"""Numbers as the pages write them."""

import pytest

from noisescale_dashboard.words import number_format as numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(1490.4, "1,490"), (0.0431, "0.0431"), (4.31e-7, "4.31e-7"), (99.96, "100"), (999.7, "1,000"), (-2.5, "−2.50"),
     (0, "0"), (None, "–"), (12_345_678, "12,300,000")],
)  # fmt: skip
def test_three_significant_digits(value: float | None, text: str) -> None:
    assert numbers.significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1490, "1.49k"), (2e9, "2G"), (999.6, "1k"), (0.5, "0.5"), (65_536, "65.5k"), (None, "–")]
)
def test_si_prefixes(value: float | None, text: str) -> None:
    assert numbers.si(value) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (numbers.count(184_200), "184,200"),
        (numbers.count(256.5), "256.5"),
        (numbers.span(1130, 1960), "1,130 – 1,960"),
        (numbers.span(1130, 1960, dense=True), "1.1k – 2k"),
        (numbers.span(345, None), "–"),
        (numbers.share(0.738), "74 %"),
        (numbers.share(0.004), "0.4 %"),
        (numbers.share_span(0.52, 0.7), "52 – 70 %"),
        (numbers.change(0.55), "−45 %"),
        (numbers.change(1.38), "+38 %"),
        (numbers.change(1.002), "±0 %"),
        (numbers.change_span(0.5, 0.6), "−50 % to −40 %"),
        (numbers.change_span(1.01, 5.44), "+1 % to 5.4 ×"),
        (numbers.unbroken("3 % (1 – 5.4 ×)"), "3\u00a0% (1\u00a0–\u2060\u00a05.4\u00a0×)"),
        (numbers.ratio(2.91), "2.9 ×"),
        (numbers.rate(1.04e-3), "1.04e-3"),
        (numbers.rate(6e-4), "6.0e-4"),
        (numbers.rate(0.1), "0.1"),
        (numbers.money(596.4), "$596"),
        (numbers.money(3.5), "$3.50"),
        (numbers.money(0.004), "under $0.01"),
        (numbers.exactly(-2.850), "−2.85"),
        (numbers.duration(0.42), "0.42 s"),
        (numbers.duration(0), "0 s"),
        (numbers.duration(95), "95 s"),
        (numbers.duration(1560), "26 min"),
        (numbers.duration(40_680), "11.3 h"),
        (numbers.duration(457_920), "5.3 days"),
    ],
)
def test_units_signs_and_ranges(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (0.797, "79 %"),
        (0.8, "80 %"),
        (0.29, "29 %"),
        (0.9899, "98 %"),
        (0.995, "more than 99 %"),
        (1.0, "more than 99 %"),
    ],
)
def test_a_probability_is_said_no_surer_than_it_is(probability: float, said: str) -> None:
    assert numbers.chance(probability) == said
