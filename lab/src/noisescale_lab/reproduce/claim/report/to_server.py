"""A task's sweep on the server: every rate that was tried, and the watched runs at the best ones."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import TransportError
from noisescale_lab.reproduce.claim.tuned_sweep import FIRST_RATE, TunedSweep
from noisescale_lab.reproduce.claim.watched_run import Watched
from noisescale_lab.reproduce.task import Task
from noisescale_lab.sweep.question import Question
from noisescale_lab.sweep.server import Labels, SweepServer
from noisescale_lab.sweep.trial import Curve, Trial

PROJECT = "reproduce"


# What a campaign found, stored on the server: once, however often the same command runs.


def store_findings(
    config: Config,
    found: Mapping[str, object],
    *,
    kind: Literal["claim", "advice"],
    effort: str,
    seed: int,
) -> str:
    """Where the dashboard shows it, or why it is not stored, in words.

    Args:
        config: Address, key and project.
        found: Summary of the claim, or of the advice.
        kind: Which of both.
        effort: "quick" or "full".
        seed: The first of the seeds.
    """
    body = {"project": config.project, "effort": effort, "seed": seed, "version": __version__, kind: found}
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        answer = server.request("POST", "/api/v1/reproductions", body)
    except TransportError as error:
        return f"Not stored on the server, the same command tries again: {error}"
    finally:
        server.close()
    if answer.status >= 300:
        return f"Not stored on the server: {answer.body.get('detail', answer.status)}"
    return f"In the dashboard: {config.url.rstrip('/')}/reproduce/{answer.body['id']}"


def answers(config: Config) -> bool:
    """Whether a server is there and ready."""
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        return server.is_ready()
    except TransportError:
        return False
    finally:
        server.close()


def store_sweep(
    config: Config, task: Task, sweep: TunedSweep, watched: Mapping[int, Sequence[Watched]], label: str
) -> str | None:
    """The id of the stored sweep; None where the server did not take it.

    Args:
        config: Address and key.
        task: What was trained.
        sweep: All its trials.
        watched: Runs by batch size, at its best rate.
        label: What the sweep is called.
    """
    question = Question(
        batch_sizes=tuple(sorted(sweep.best)),
        targets=task.targets,
        goal=task.goal,
        metric=task.metric_name,
        seeds=sweep.seeds,
        learning_rates=None,
        first_learning_rate=FIRST_RATE[task.optimizer.name],
        max_steps=1,
        budget=None,
    )
    server = SweepServer(replace(config, project=PROJECT, task=task.name))
    sweep_id = str(uuid.uuid4())
    try:
        server.begin(sweep_id, question, Labels(label, task.unit, task.optimizer.name))
        for trial in sweep.trials:
            for part in _parts(trial, sweep, watched):
                server.send(sweep_id, part)
    finally:
        server.close()
    return None if server.problem else sweep_id


def _parts(trial: Trial, sweep: TunedSweep, watched: Mapping[int, Sequence[Watched]]) -> tuple[Trial, ...]:
    """The trial; where it is a tuned one, the seeds that were watched as their runs, and the others as curves."""
    batch = trial.setting.batch_size
    runs = watched.get(batch, ())[: len(trial.curves)]
    if sweep.best[batch] is not trial or not runs:
        return (trial,)
    logged = tuple(
        Curve(curve.seed, curve.steps, curve.values, run.run_id) for curve, run in zip(trial.curves, runs, strict=False)
    )
    others = trial.curves[len(runs) :]
    return (replace(trial, curves=logged), *([replace(trial, curves=others)] if others else []))
