"""Branches on the server: a sweep of kind branch that belongs to the run."""

import math
import uuid
from dataclasses import dataclass

from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import TransportError
from noisescale_lab.branch.result import ArmResult, BranchResult


@dataclass(frozen=True, slots=True)
class BranchLabels:
    """Whose branches these are.

    Attributes:
        project: Of the run.
        task: Of the run.
        run_id: UUID of the run that they left.
        unit: What an example is, for display.
        optimizer: Class name of the optimizer; None where nobody gave one.
    """

    project: str
    task: str
    run_id: str
    unit: str
    optimizer: str | None


def store(config: Config, labels: BranchLabels, *, seed: int, result: BranchResult) -> tuple[str | None, str | None]:
    """The sweep's id and None, or None and why the branches were not stored."""
    sweep_id = str(uuid.uuid4())
    sweep = {
        "id": sweep_id,
        "project": labels.project,
        "task": labels.task,
        "kind": "branch",
        "run_id": labels.run_id,
        "metric": "held-out loss",
        "unit": labels.unit,
        "optimizer": labels.optimizer,
        "details": _details(result),
    }
    runs = [_run(found, result.before, seed) for found in result.arms]
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        for path, body in (("/api/v1/sweeps", sweep), (f"/api/v1/sweeps/{sweep_id}/runs", {"runs": runs})):
            answer = server.request("POST", path, body)
            if answer.status >= 300:
                return None, f"{config.url} refused it: {answer.body.get('detail', answer.status)}"
    except TransportError as error:
        return None, str(error)
    finally:
        server.close()
    return sweep_id, None


def _run(found: ArmResult, before: float, seed: int) -> dict[str, object]:
    """An arm as a curve of two points; what diverged has only the first."""
    curve = [(0, before), (found.arm.num_steps, found.mean_loss)]
    finite = [(step, value) for step, value in curve if math.isfinite(value)]
    return {
        "batch_size": float(found.arm.batch_size),
        "lr": found.arm.lr,
        "seed": seed,
        "status": "complete" if math.isfinite(found.mean_loss) else "infeasible",
        "steps": [step for step, _ in finite],
        "values": [value for _, value in finite],
    }


def _details(result: BranchResult) -> dict[str, object]:
    local, cost = result.local_critical_batch, result.cost
    return {
        "meaning": result.meaning,
        "margin": result.margin,
        "before": _number(result.before),
        "local_critical_batch": None if local is None else {"low": local.low, "high": local.high},
        "step": None if result.point is None else result.point.step,
        "noise_scale": _noise_scale(result),
        "kappa": None if result.kappa is None else {"low": result.kappa.low, "high": result.kappa.high},
        "cost": {"steps": cost.steps, "examples": cost.examples, "seconds": cost.seconds, "usd": cost.usd},
        "arms": [_arm(found) for found in result.arms],
    }


def _noise_scale(result: BranchResult) -> dict[str, object] | None:
    """As the run showed it where the branches left, in examples."""
    if result.point is None:
        return None
    scale = result.point.noise_scale
    return {"value": scale.value, "low": scale.low, "high": scale.high, "level": scale.level, "state": scale.state}


def _arm(found: ArmResult) -> dict[str, object]:
    comparison = found.comparison
    return {
        "batch_size": found.arm.batch_size,
        "lr": found.arm.lr,
        "lr_at_end": found.lr_at_end,
        "num_steps": found.arm.num_steps,
        "seconds": found.seconds,
        "loss": _number(found.mean_loss),
        "num_held_out_batches": len(found.losses),
        "difference": None if comparison is None else _number(comparison.difference),
        "low": None if comparison is None else _number(comparison.low),
        "high": None if comparison is None else _number(comparison.high),
        "level": None if comparison is None else comparison.level,
        "verdict": None if comparison is None else str(comparison.verdict),
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
