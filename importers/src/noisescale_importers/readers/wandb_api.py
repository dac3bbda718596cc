"""Runs on a W&B server, by its public API with the user's own key; part of the importer `wandb`."""

import importlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from noisescale_core.errors import ConfigError
from noisescale_importers.readers.table import flat
from noisescale_importers.roles import number_of
from noisescale_importers.source import Damage, Row, SourceRun, State, shown

PATH = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)?")
"""ENTITY/PROJECT, or ENTITY/PROJECT/RUN."""

STATES: Mapping[str, State] = {
    "finished": "finished", "failed": "failed", "crashed": "failed", "killed": "failed", "running": "running",
}  # fmt: skip


def runs_of(path: str) -> Iterator[SourceRun | Damage]:
    """The runs of a project, or one run.

    Raises:
        ConfigError: Where the server gives no answer, or has no such project.
    """
    wandb = importlib.import_module("wandb")  # takes a second to import, and files do without
    try:
        api = wandb.Api()
        found = [api.run(path)] if path.count("/") == 2 else list(api.runs(path))
    except (wandb.errors.Error, ValueError, OSError) as error:
        raise ConfigError(
            f"W&B gives no runs of {shown(path)}: {shown(error, 300)}; log in with `wandb login`"
        ) from error
    for run in found:
        yield _run(run, path, (wandb.errors.Error, ValueError, OSError))


def identity(project: str | None, run_id: str) -> str:
    """What tells a run from others, on disk and on a server: an id that somebody chose is of one project alone."""
    return f"{project or 'uncategorized'}/{run_id}"


def _run(run: Any, path: str, faults: tuple[type[Exception], ...]) -> SourceRun:
    return SourceRun(
        identity=identity(path.split("/")[1], str(run.id)),
        place=f"{path} {run.id}",
        rows=lambda: _rows(run, faults),
        name=run.name or str(run.id),
        config=flat(dict(run.config)),
        group=path.split("/")[1],
        state=STATES.get(str(run.state), "unknown"),
        started_at=_seconds(run.created_at),
        roles={"step": "_step"},
    )


def _rows(run: Any, faults: tuple[type[Exception], ...]) -> Iterator[Row | Damage]:
    try:
        for number, entry in enumerate(run.scan_history(), start=1):
            yield row_of(flat(dict(entry)), f"history {number}")
    except faults as error:
        yield Damage("history", f"the rest was not given: {shown(error, 300)}")


def row_of(entry: Mapping[str, object], place: str) -> Row | Damage:
    """A row of a history; what W&B adds to each has its own names.

    Numbers that are not finite stand in it as texts.
    """
    values = {}
    for name, value in entry.items():
        is_text = isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity")
        number = None if is_text else number_of(value)
        if number is not None:
            values[name] = number
    time, step = values.pop("_timestamp", None), values.pop("_step", None)
    values.pop("_runtime", None)
    if step is None or step != step or not abs(step) < 2**53:
        return Damage(place, f"has no step, got {step}", is_a_row=True)
    return Row(values, int(step), time, place)


def _seconds(text: object) -> float | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
