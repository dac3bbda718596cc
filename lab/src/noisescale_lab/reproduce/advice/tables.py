"""What the advice was worth: regret by policy, and how good recommendations half-way were."""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_lab.reproduce.advice.glimpses import Glimpse
from noisescale_lab.reproduce.advice.prospects import known
from noisescale_lab.reproduce.advice.recommendation_scores import Row, rows
from noisescale_lab.reproduce.advice.scores import Score, scores
from noisescale_lab.reproduce.advice.task_advice import SCHEDULES, SHARES, TaskAdvice
from noisescale_lab.reproduce.claim.report.files import finite_only
from noisescale_lab.reproduce.registry import HELD_OUT

SUMMARY = "summary"
"""Folder of the tables below that of the tasks."""

MEASURED = "measured, latest window"
"""What the product knows; the exact average tells the error of the model from that of measuring."""


def measured(glimpse: Glimpse) -> NoiseScaleEstimate:
    """As the product shows it."""
    return glimpse.latest


def exact(glimpse: Glimpse) -> NoiseScaleEstimate:
    """Without statistical error, averaged over the run so far."""
    return known(glimpse.exact_average, glimpse.latest)


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables.

    Attributes:
        policies: Regret by policy and kind of start, by split of the tasks and schedule of the rate.
        recommendations: At shares of runs that nobody advised, over all tasks.
    """

    policies: Mapping[tuple[str, str], Sequence[Score]]
    recommendations: Sequence[Row]


def tables(found: Sequence[TaskAdvice]) -> Tables:
    """The tables of what was tried."""
    policies: dict[tuple[str, str], Sequence[Score]] = {}
    recommendations: list[Row] = []
    for schedule in SCHEDULES:
        for split, is_meant in (("held out", True), ("design", False)):
            of_split = {one.task: one.outcomes[schedule] for one in found if (one.task in HELD_OUT) == is_meant}
            if of_split:
                policies[split, schedule] = scores(of_split)
        looks = {one.task: one.looks[schedule] for one in found}
        references = {one.task: one.reference for one in found}
        known_as = {MEASURED: measured, "exact, average so far": exact}
        recommendations += rows(schedule, looks, references, SHARES, known_as)
    return Tables(policies, recommendations)


def as_text(found: Tables) -> str:
    """Both kinds of tables, to print."""
    return "\n".join([*_policy_lines(found), *_recommendation_lines(found)])


def write_files(folder: Path, found: Tables) -> Path:
    """Write the tables as CSV and JSON; the folder that holds them."""
    folder = folder / SUMMARY
    folder.mkdir(exist_ok=True)
    _csv(folder / "policies.csv", _policy_rows(found))
    _csv(folder / "recommendations.csv", _recommendation_rows(found))
    (folder / "advice.json").write_text(json.dumps(summary(found), indent=1, allow_nan=False))
    return folder


def summary(found: Tables) -> dict[str, Any]:
    """Both kinds of tables, as JSON takes them: what there is none of is null."""
    content: dict[str, Any] = finite_only(
        {"policies": _policy_rows(found), "recommendations": _recommendation_rows(found)}
    )
    return content


def _policy_rows(found: Tables) -> list[dict[str, object]]:
    return [
        {"tasks": split, "rate": schedule} | asdict(score)
        for (split, schedule), of_part in found.policies.items()
        for score in of_part
    ]


def _recommendation_rows(found: Tables) -> list[dict[str, object]]:
    return [asdict(row) for row in found.recommendations]


def _policy_lines(found: Tables) -> Iterator[str]:
    for (split, schedule), of_part in found.policies.items():
        yield f"\nRegret in %, median / p90, {split} tasks, {schedule} learning rate; cost against keeping what one has"
        yield f"{'policy':<38} {'all starts':>12} {'right':>12}  {'cost, 95 %':<20} {'missed':>6}"
        for policy in dict.fromkeys(score.policy for score in of_part):
            kinds = {score.kind: score for score in of_part if score.policy == policy}
            everything, right = kinds["all"], kinds["right"]
            cost = f"{everything.relative:.2f} [{everything.low:.2f}, {everything.high:.2f}]"
            starts = f"{_pair(everything.median, everything.p90):>12} {_pair(right.median, right.p90):>12}"
            yield f"{policy:<38} {starts}  {cost:<20} {everything.missed:>6.0%}"


def _recommendation_lines(found: Tables) -> Iterator[str]:
    yield "\nRecommendations for runs that nobody advised, at a share of the run; intervals: tasks drawn anew"
    head = f"{'rate':<9} {'share':>5}  {'noise scale':<24} {'κ from':<34} {'shown':>5}"
    yield f"{head} {'holds':>17} {'decides':>17} right"
    for row in found.recommendations:
        holds = _share(row.holds, row.holds_low, row.holds_high)
        decides = _share(row.decided, row.decided_low, row.decided_high)
        head = f"{row.rate:<9} {row.share:>5}  {row.noise:<24} {row.kappa:<34} {row.shown:>5.0%}"
        yield f"{head} {holds:>17} {decides:>17} {'–' if math.isnan(row.right) else f'{row.right:.0%}'}"


def _pair(median: float, ninth_decile: float) -> str:
    return f"{median:.0f} / {ninth_decile:.0f}"


def _share(value: float, low: float, high: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0%} [{low:.0%}, {high:.0%}]"


def _csv(path: Path, content: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="") as file:
        if content:
            writer = csv.DictWriter(file, list(content[0]))
            writer.writeheader()
            writer.writerows(content)
