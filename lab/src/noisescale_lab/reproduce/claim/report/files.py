"""The results as CSV and JSON, for other programs to draw."""

import csv
import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from noisescale_lab.reproduce.claim.judged.findings import Findings
from noisescale_lab.reproduce.claim.judged.retrospect import Series
from noisescale_lab.reproduce.claim.task_result import TaskResult

SUMMARY = "summary"
"""Folder of these files below that of the tasks."""

GROUP, NAME = "noisescale.reports", "reproduce"
"""Of the entry point: a function from the summary and the tables of a terminal to a document."""

HOW = "in a checkout of noisescale, pip install ./dashboard, and the same command draws them as report.html"


def write_files(folder: Path, found: Findings) -> Path:
    """Write targets, curves, windows and figures; the folder that holds them."""
    folder = folder / SUMMARY
    folder.mkdir(exist_ok=True)
    _csv(folder / "targets.csv", _target_rows(found.results))
    _csv(folder / "steps.csv", _step_rows(found.results))
    _csv(folder / "windows.csv", _window_rows(found.results))
    _csv(folder / "figures.csv", _figure_rows(found.series))
    (folder / "summary.json").write_text(json.dumps(summary(found), indent=1, allow_nan=False))
    return folder


def summary(found: Findings) -> dict[str, Any]:
    """Everything but windows, as JSON takes it: what is no number is null."""
    content = dataclasses.asdict(dataclasses.replace(found, results=()))
    del content["results"]
    content["targets"] = list(_target_rows(found.results))
    content["adaptive"] = {
        result.task: dataclasses.asdict(result.adaptive) for result in found.results if result.adaptive is not None
    }
    finite: dict[str, Any] = finite_only(content)
    return finite


def finite_only(content: Any) -> Any:
    """The same with null for every number that is none: JSON knows neither NaN nor infinity."""
    match content:
        case float() if not math.isfinite(content):
            return None
        case dict():
            return {name: finite_only(value) for name, value in content.items()}
        case list() | tuple():
            return [finite_only(value) for value in content]
        case _:
            return content


def _target_rows(results: Sequence[TaskResult]) -> Iterable[Mapping[str, object]]:
    for result in results:
        for target in result.targets:
            fitted = target.fit
            yield {
                "task": result.task,
                "group": result.group,
                "optimizer": result.optimizer,
                "unit": result.unit,
                "units_per_example": result.units_per_example,
                "num_seeds": result.num_seeds,
                "target": target.target,
                "min_steps": None if fitted is None else fitted.min_steps,
                "critical_batch": None if fitted is None else fitted.critical_batch,
                "critical_batch_low": None if fitted is None else fitted.low,
                "critical_batch_high": None if fitted is None else fitted.high,
                "near_critical": target.near_critical,
                "near_critical_low": None if target.near_interval is None else target.near_interval[0],
                "near_critical_high": None if target.near_interval is None else target.near_interval[1],
                "ideal_steps": target.ideal_steps,
                "all_batches": target.all_batches,
                "exact_near_critical": target.exact_near_critical,
                "exclusion": target.exclusion,
            }


def _step_rows(results: Sequence[TaskResult]) -> Iterable[Mapping[str, object]]:
    for result in results:
        for target in result.targets:
            for batch, steps in target.points:
                row: dict[str, object] = {"task": result.task, "target": target.target, "batch": batch, "steps": steps}
                if target.fit is not None:
                    row["fitted_steps"] = target.fit.min_steps * (1 + target.fit.critical_batch / batch)
                yield row | {"fitted_steps": row.get("fitted_steps")}


def _window_rows(results: Sequence[TaskResult]) -> Iterable[Mapping[str, object]]:
    for result in results:
        for run in result.runs:
            for window in run.windows:
                yield {"task": result.task, "batch": run.batch, "lr": run.lr} | dataclasses.asdict(window)


def _figure_rows(found: Sequence[Series]) -> Iterable[Mapping[str, object]]:
    for one in found:
        if one.agreement is None:
            continue
        head = {"average": one.average, "targets": one.targets, "tasks": one.tasks, "points": len(one.points)}
        for name, figure in dataclasses.asdict(one.agreement).items():
            if isinstance(figure, dict):
                yield head | {"figure": name} | figure
        yield head | {"figure": "decades", "value": one.agreement.decades, "low": None, "high": None}


def _csv(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    listed = list(rows)
    with path.open("w", newline="") as file:
        if listed:
            writer = csv.DictWriter(file, list(listed[0]))
            writer.writeheader()
            writer.writerows(listed)


# The figures as one HTML file, drawn by the dashboard where it is installed: no figure is drawn twice.


def write_report(folder: Path, found: Findings, text: str) -> Path | None:
    """The file; None where no dashboard is installed.

    Args:
        folder: Of the results.
        found: What is drawn.
        text: The tables, which go in as they are.
    """
    for entry_point in entry_points(group=GROUP, name=NAME):
        document: str = entry_point.load()(summary(found), text)
        path = folder / "report.html"
        path.write_text(document, encoding="utf-8")
        return path
    return None
