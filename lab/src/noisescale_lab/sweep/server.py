"""A sweep on the server: created, its runs or curves attached, the fit asked for. Training goes on without one."""

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import ConfigError, TransportError
from noisescale_lab.sweep.question import Question
from noisescale_lab.sweep.trial import Curve, Trial

Item = TypeVar("Item")

MAX_POINTS = 2_000
"""Evaluations of a curve that the server takes."""

MAX_READ = 1_000
"""Points of a metric that the server gives."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What a sweep is called.

    Attributes:
        name: For people; None: the server says its task, kind and moment.
        project: As in `init()`.
        task: As in `init()`.
        unit: What an example is, for display.
        optimizer: Class name of the optimizer.
    """

    name: str | None = None
    project: str | None = None
    task: str | None = None
    unit: str = "examples"
    optimizer: str | None = None


class SweepServer:
    """Where a sweep's trials go; after the first failure nothing more is sent until the end.

    Args:
        config: Address, key, project and task.
        server: Stands in for the connection; None: as the settings say, or none where they are disabled.
    """

    def __init__(self, config: Config, server: HttpServer | None = None) -> None:
        self._config = config
        self._server = server
        if server is None and config.mode == "online":
            self._server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
        self.problem: str | None = None if self._server is not None else "the client is disabled"

    def begin(self, sweep_id: str, question: Question, labels: Labels) -> None:
        """Create the sweep, or find it again."""
        body = {
            "id": sweep_id,
            "project": self._config.project,
            "task": self._config.task,
            "name": labels.name,
            "metric": question.metric,
            "goal": question.goal,
            "targets": list(question.targets),
            "unit": labels.unit,
            "optimizer": labels.optimizer,
        }
        self._ask("POST", "/api/v1/sweeps", body)

    def send(self, sweep_id: str, trial: Trial) -> None:
        """Attach the runs of a trial, or its curves; a second time replaces them."""
        path = f"/api/v1/sweeps/{sweep_id}/runs"
        if all(curve.run_id is not None for curve in trial.curves):
            runs = [_common(trial, curve) | {"run_id": curve.run_id} for curve in trial.curves]
            if self._ask("POST", path, {"runs": runs}, is_optional=True):
                return
            # a run that has not arrived there, or is another project's, is sent as what is known of it here
        curves = [
            _common(trial, curve)
            | {
                "id": str(uuid.uuid5(uuid.UUID(sweep_id), f"{trial.setting} {curve.seed}")),
                "steps": list(thinned(curve.steps)),
                "values": list(thinned(curve.values)),
            }
            for curve in trial.curves
        ]
        self._ask("POST", path, {"runs": curves})

    def metric_of(self, run_id: str, name: str) -> Sequence[tuple[int, float]]:
        """Steps taken and the metric of a run that is stored, not a number where it was not finite.

        Raises:
            ConfigError: Without a server, or where the run has not logged it.
        """
        query = urlencode({"name": name, "points": MAX_READ})
        found = self._ask("GET", f"/api/v1/runs/{run_id}/metrics?{query}", None, is_optional=True).get("metrics")
        series = found[0] if isinstance(found, list) and found else None
        if not isinstance(series, Mapping):
            reason = self.problem or f"the server has no {name!r} of it"
            raise ConfigError(f"train() gave the id of run {run_id}, but {reason}: give the Run itself, or log it")
        rows = zip(series["step"], series["value"], strict=True)
        return [(step + 1, math.nan if value is None else value) for step, value in rows]

    def send_again(self, sweep_id: str, question: Question, labels: Labels, trials: Sequence[Trial]) -> None:
        """Everything once more, where something went wrong before."""
        if self.problem is not None and self._server is not None:
            self.problem = None
            self.begin(sweep_id, question, labels)
            for trial in trials:
                self.send(sweep_id, trial)

    def critical_batches(self, sweep_id: str) -> tuple[Mapping[str, object], ...]:
        """The fit for each target; empty without an answer."""
        found = self._ask("GET", f"/api/v1/sweeps/{sweep_id}/critical-batch", None).get("targets")
        return tuple(item for item in found if isinstance(item, Mapping)) if isinstance(found, list) else ()

    def close(self) -> None:
        """Give the connection back."""
        if self._server is not None:
            self._server.close()

    def _ask(
        self, method: str, path: str, body: Mapping[str, object] | None, *, is_optional: bool = False
    ) -> Mapping[str, object]:
        if self._server is None or self.problem is not None:
            return {}
        try:
            answer = self._server.request(method, path, body)
        except TransportError as error:
            self.problem = str(error)
            return {}
        if answer.status >= 300:
            if is_optional and 400 <= answer.status < 500:
                return {}
            self.problem = f"{self._config.url} refused {method} {path}: {answer.body.get('detail', answer.status)}"
            return {}
        return answer.body


def _common(trial: Trial, curve: Curve) -> dict[str, object]:
    return {
        "batch_size": float(trial.setting.batch_size),
        "lr": trial.setting.lr,
        "seed": curve.seed,
        "status": trial.status if curve.steps else "infeasible",
    }


def thinned(values: Sequence[Item]) -> Sequence[Item]:
    """At most as many as the server takes, the last one among them."""
    every = -(-len(values) // MAX_POINTS)
    return values if every <= 1 else values[::-1][::every][::-1]
