"""MLflow: a folder `mlruns`, an SQLite file, or a tracking server, read by MLflow's own client."""

import math
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import SQLAlchemyError

from noisescale_core.errors import ConfigError
from noisescale_importers.roles import number_of
from noisescale_importers.source import Damage, Row, SourceRun, State, shown

RUNS_A_PAGE = 1_000
STATES: Mapping[str, State] = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "failed", "RUNNING": "running"}
FAULTS = (MlflowException, SQLAlchemyError, OSError, ValueError, KeyError, TypeError, AttributeError)
"""What a damaged store makes MLflow's client raise."""


class Importer:
    """The plug-in."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The runs of stores.

        Raises:
            ConfigError: For a source that is not there or is no store.
        """
        for source in sources:
            yield from _runs_of(_client(source), source)


importer = Importer()


def _client(source: str) -> MlflowClient:
    # MLflow asks for this before it reads the folders that it wrote itself for years
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    address = source if "://" in source else _address(Path(os.path.abspath(source)))
    try:
        return MlflowClient(tracking_uri=address)
    except FAULTS as error:
        raise ConfigError(f"{shown(source)} is no store that MLflow can read: {shown(error, 300)}") from error


def _address(path: Path) -> str:
    """The address of a store on disk. MLflow would make one of whatever is there, so it is looked at first."""
    if not path.exists():
        raise ConfigError(f"no file or folder {shown(path)}: give mlruns, an SQLite file, or an address")
    if path.is_dir():
        if not any(path.glob("*/meta.yaml")):
            raise ConfigError(f"{shown(path)} is no store that MLflow can read: no folder in it has a meta.yaml")
        return path.as_uri()
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise ConfigError(f"{shown(path)} is no store that MLflow can read: {error}") from error
    if not {"experiments", "runs", "metrics"} <= tables:
        raise ConfigError(f"{shown(path)} is no store that MLflow can read: it has no tables of runs")
    return f"sqlite:///{path}"


def _runs_of(client: MlflowClient, source: str) -> Iterator[SourceRun | Damage]:
    try:
        experiments, token = [], None
        while True:  # a page holds a thousand
            page = client.search_experiments(page_token=token)
            experiments += page
            token = page.token
            if not token:
                break
    except FAULTS as error:
        raise ConfigError(f"{shown(source)} is no store that MLflow can read: {shown(error, 300)}") from error
    for experiment in sorted(experiments, key=lambda one: str(one.experiment_id)):
        token = None
        while True:
            try:
                page = client.search_runs([experiment.experiment_id], max_results=RUNS_A_PAGE, page_token=token)
            except FAULTS as error:
                where = f"{shown(source)}, experiment {shown(experiment.name)}"
                yield Damage(where, f"its runs are read one by one: {shown(error, 300)}")
                yield from _one_by_one(client, experiment, source)
                break
            for run in page:
                yield _run(client, experiment.name, run, source)
            token = page.token
            if not token:
                break


def _one_by_one(client: MlflowClient, experiment: Any, source: str) -> Iterator[SourceRun | Damage]:
    """The runs of an experiment on disk of which one is damaged: MLflow's list gives all or none."""
    for folder in sorted(Path(os.path.abspath(source)).glob(f"{experiment.experiment_id}/*/meta.yaml")):
        run_id = folder.parent.name
        try:
            run = client.get_run(run_id)
        except FAULTS as error:
            yield Damage(f"{shown(source)} run {shown(run_id)}", shown(error, 300))
        else:
            yield _run(client, experiment.name, run, source)


def _run(client: MlflowClient, experiment: str, run: Any, source: str) -> SourceRun:
    """A run by MLflow's own id."""
    info, config = run.info, {}
    for name, value in run.data.params.items():
        number = number_of(value)
        config[name] = value if number is None else number
    return SourceRun(
        identity=str(info.run_id),
        place=f"{source} run {info.run_id}",
        rows=lambda: _rows(client, str(info.run_id), sorted(run.data.metrics)),
        name=info.run_name or str(info.run_id),
        config=config,
        group=experiment,
        state=STATES.get(str(info.status), "unknown"),
        started_at=None if info.start_time is None else info.start_time / 1000,
        has_single_values=True,
    )


def _rows(client: MlflowClient, run_id: str, names: Sequence[str]) -> Iterator[Row | Damage]:
    """All values by the time at which they were logged: what is logged later comes later."""
    values: list[tuple[int, int, str, float]] = []
    for name in names:
        try:
            found = client.get_metric_history(run_id, name)
        except FAULTS as error:
            yield Damage(f"metric {shown(name)}", shown(error, 300))
            continue
        values += [(one.timestamp, one.step, name, one.value) for one in found]
    for timestamp, step, name, value in sorted(values):
        yield Row({name: _as_logged(value)}, step, timestamp / 1000, f"{shown(name)} at step {step}")


def _as_logged(value: float) -> float:
    """A database of MLflow has the largest double where an infinity was logged."""
    return math.copysign(math.inf, value) if abs(value) >= sys.float_info.max else float(value)
