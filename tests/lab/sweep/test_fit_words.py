"""What a sweep prints of the server's fit."""

import pytest

from noisescale_lab.sweep.result import fit_lines


def estimate(value):
    return {"value": value, "low": value / 2, "high": value * 2, "level": 0.95}


def fit_of(*findings):
    lack = {
        "findings": list(findings), "exponent": {"value": 0.7, "low": 0.6, "high": None, "level": 0.95},
        "grid_edge_batch_sizes": [16.0, 4096.0],
    }  # fmt: skip
    fit = {"critical_batch": estimate(256.0), "min_steps": estimate(100.0), "min_examples": estimate(25600.0)}
    return {"target": 0.5, "fit": fit | {"rms": 0.063, "lack_of_fit": lack}, "refusal": None}


def test_values_come_with_interval_unit_and_level():
    first, second = fit_lines(fit_of())

    assert first.split("; ") == [
        "B_crit 256 [128, 512] examples",
        "S_min 100 [50, 200] steps",
        "E_min 25,600 [12,800, 51,200] examples (95 %).",
    ]
    assert second == "Nothing speaks against the fit."


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        ("exponent", "with exponent 0.7 [0.6, ?] and not 1"),
        ("misfit", "miss the curve by 6% (rms), more than repeats differ"),
        ("unequal_noise", "repeats scatter more at some batch sizes"),
        ("grid_edge", "the last one tried at batch size 16, 4,096: try rates beyond it"),
        ("few_steps", "S_min is below 5 steps, where the theory does not hold"),
        ("not_known_yet", "not known yet."),
    ],
)
def test_each_finding_is_a_sentence(finding, words):
    _, against = fit_lines(fit_of(finding))

    assert against.startswith("Against the fit: ")
    assert words in against


def test_all_findings_are_said():
    assert len(fit_lines(fit_of("misfit", "grid_edge"))) == 3


def test_a_turn_is_said_with_the_best_batch_and_what_was_left_out():
    found = fit_of()
    found["fit"]["turn"] = {"best_batch": estimate(64.0), "explanation": "Examples are fewest at about 64."}

    _, turn, against = fit_lines(found)

    assert turn == "B_opt 64 [32, 128] examples. Examples are fewest at about 64."
    assert against == "Nothing speaks against the fit."


def test_a_refusal_is_its_explanation():
    found = {"target": 0.5, "fit": None, "refusal": {"reason": "misfit", "explanation": "The curve misses."}}

    assert fit_lines(found) == ["No fit: The curve misses."]
