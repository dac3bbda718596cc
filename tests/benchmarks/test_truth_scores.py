"""Scores compare on the same replicates, and the README's table says what has no number."""

import csv
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth import benchmark_truth, power_law, scores
from benchmarks.truth.measure import measure
from benchmarks.truth.power_law import PowerLaw
from benchmarks.truth.readme_table import readme_table

TRUTH = np.full(4, 100.0)


def test_a_score_counts_what_is_no_number_and_what_is_absurd() -> None:
    estimates = np.array([100.0, 100 * np.e, -5.0, 1e6])

    score = scores.score(estimates, TRUTH)

    assert score.without_number == 0.25
    assert score.absurd == 0.25
    assert score.median == pytest.approx(1.0)
    assert score.rms == pytest.approx(np.sqrt((0 + 1 + np.log(1e4) ** 2) / 3))


def test_two_estimators_are_compared_where_both_give_a_number() -> None:
    ours = np.array([110.0, np.nan, 90.0, 100.0])
    peer = np.array([120.0, 100.0, np.inf, 50.0])

    comparison = scores.compare(ours, peer, TRUTH)

    assert comparison.replicates == 2
    assert comparison.ours == pytest.approx(np.sqrt(np.log(1.1) ** 2 / 2))
    assert comparison.peer == pytest.approx(np.sqrt((np.log(1.2) ** 2 + np.log(0.5) ** 2) / 2))
    assert comparison.ratio == pytest.approx(comparison.ours / comparison.peer)


@pytest.fixture(scope="module")
def rows() -> list[benchmark_truth.Row]:
    target = PowerLaw("B 50", 50, 256, 16, dimension=64)
    return list(benchmark_truth.rows_of(measure(target, 80, seed=1)))


def test_chunks_of_replicates_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    target = PowerLaw("B 50", 50, 256, 16, dimension=64)
    monkeypatch.setattr(power_law, "CHUNK_VALUES", 50 * 32 * 64)

    measurement = measure(target, 80, seed=1)

    assert measurement.truth == pytest.approx(np.full(80, 50.0), rel=1e-5)
    assert len(measurement.ours[0].answers.value) == len(measurement.peers[0].noise_scale) == 80
    assert len(set(measurement.peers[0].noise_scale)) == 80


def test_ours_is_no_worse_than_a_right_peer_on_the_same_replicates(rows: list[benchmark_truth.Row]) -> None:
    right = [row for row in rows if row["kind"] == "within step"]

    assert len(right) == 7
    assert all(row["paired_replicates"] == 80 for row in right)
    assert max(float(row["paired_ratio"]) for row in right) < 1.02


def test_a_bias_or_a_better_peer_breaks_the_verdict(rows: list[benchmark_truth.Row]) -> None:
    ours, peer = rows[0], next(row for row in rows if row["kind"] == "within step")
    fair = ours | {
        "trace_cov_bias_se": 0.001,
        "grad_sq_norm_bias_se": 0.001,
        "trace_cov_bias": 0,
        "grad_sq_norm_bias": 0,
    }

    assert benchmark_truth.verdict([fair, peer | {"paired_ratio": 1.01}]) == []
    assert len(benchmark_truth.verdict([fair | {"trace_cov_bias": 0.02}, peer | {"paired_ratio": 1.03}])) == 2


def test_the_table_of_the_readme_has_a_line_a_target(rows: list[benchmark_truth.Row], tmp_path: Path) -> None:
    silent = [row | {"target": "noise", "without_number": 1.0 if row["kind"] == "ours" else 0.25} for row in rows]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with (tmp_path / "truth.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, columns, restval="")
        table.writeheader()
        table.writerows(rows + silent)

    header, rule, first, second = readme_table(tmp_path / "truth.csv").splitlines()

    assert header.count("|") == rule.count("|") == first.count("|") == second.count("|")
    assert first.startswith("| B 50 (256 × 16) | 50 | 0.")
    assert "| none (100%) | none (100%) |" in second
    assert "(25%)" in second
