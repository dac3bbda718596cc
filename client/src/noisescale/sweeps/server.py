"""A sweep on the server: created, its trials sent as curves, the fit asked for. Training goes on without one."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from noisescale.config import Config
from noisescale.errors import TransportError
from noisescale.sweeps.question import Question
from noisescale.sweeps.trial import Trial
from noisescale.transport.http import HttpServer
from noisescale.version import __version__

Item = TypeVar("Item")

MAX_POINTS = 2_000
"""Evaluations of a curve that the server takes."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What a sweep is called.

    Attributes:
        name: For people; None: the server takes the first characters of its id.
        unit: What an example is, for display.
        optimizer: Class name of the optimizer.
    """

    name: str | None
    unit: str
    optimizer: str | None


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
        """Attach the curves of a trial; a second time replaces them."""
        runs = [
            {
                "id": str(uuid.uuid5(uuid.UUID(sweep_id), f"{trial.setting} {curve.seed}")),
                "batch_size": float(trial.setting.batch_size),
                "lr": trial.setting.lr,
                "seed": curve.seed,
                "status": trial.status if curve.steps else "infeasible",
                "steps": list(thinned(curve.steps)),
                "values": list(thinned(curve.values)),
            }
            for curve in trial.curves
        ]
        self._ask("POST", f"/api/v1/sweeps/{sweep_id}/runs", {"runs": runs})

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

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None) -> Mapping[str, object]:
        if self._server is None or self.problem is not None:
            return {}
        try:
            answer = self._server.request(method, path, body)
        except TransportError as error:
            self.problem = str(error)
            return {}
        if answer.status >= 300:
            self.problem = f"{self._config.url} refused {method} {path}: {answer.body.get('detail', answer.status)}"
            return {}
        return answer.body


def thinned(values: Sequence[Item]) -> Sequence[Item]:
    """At most as many as the server takes, the last one among them."""
    every = -(-len(values) // MAX_POINTS)
    return values if every <= 1 else values[::-1][::every][::-1]
