"""Ids of runs and streams that follow from the source: who imports it again finds what is there."""

import json
import uuid

from noisescale_importers.source import SourceRun

NAMESPACE = uuid.UUID("0f1d6d2e-9c1b-5b70-9a3e-6d5f3e0c7a11")
"""Of all imported runs; another one would import every source a second time."""


def run_id(run: SourceRun, *, kind: str, project: str, source_name: str | None) -> str:
    """The id of an imported run in a project.

    Args:
        run: The run.
        kind: Name of the importer.
        project: Where it goes.
        source_name: Stands for the folder that the source lies in; None: that folder itself.
    """
    where = run.root if source_name is None else f"named {source_name}"
    return str(uuid.uuid5(NAMESPACE, json.dumps([project, kind, where, run.identity])))


def stream_id(of_run: str, part: int) -> str:
    """The id of a part of a run: part 0 is the run until it ends or goes back to an earlier step, and so on."""
    return str(uuid.uuid5(uuid.UUID(of_run), f"part {part}"))


def sweep_id(project: str, task: str, metric: str | None) -> str:
    """The id of the sweep that imported runs of a task make, by the metric that targets are of."""
    return str(uuid.uuid5(NAMESPACE, json.dumps(["sweep", project, task, metric])))
