"""What a server answers to a recommendation, and a server that answers it."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from noisescale.ask.asking import RecommendingServer
from noisescale.config import Config
from noisescale_core.errors import TransportError


def interval(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high, "level": 0.95}


def make_answer(**fields: object) -> dict[str, Any]:
    """The answer for a run of sequences that should raise its batch."""
    shares = {"now": interval(0.97, 0.96, 0.98), "recommended": interval(0.5, 0.48, 0.52)}
    return {
        "run_id": "7d1f0c9e-2222-4333-8444-555566667777",
        "step": 399,
        "unit": "tokens",
        "example": "sequence",
        "units_per_example": 1024.0,
        "noise_scale": {
            "state": "resolved", "value": 992.0, "low": 874.0, "high": 1120.0, "level": 0.95, "z": 17.2,
            "reason": None, "num_updates": 20, "num_blocks": 20, "updates_needed": None,
        },
        "decision": "increase",
        "headline": "Raise the batch to 1,024",
        "reason": "The noise scale is 31 × the batch of 32 sequences, and the whole interval lies on one side of it.",
        "effect": "Predicted: −94 % (−97 % to −60 %) steps, 1.9 × (+3 % to 13 ×) sequences to the same loss.",
        "current_batch_size": 32.0,
        "recommended_batch_size": 1024,
        "interval": interval(992.0, 140.0, 7200.0),
        "statistical_interval": interval(992.0, 874.0, 1120.0),
        "calibration": {
            "state": "uncalibrated", "kappa": interval(1.0, 0.02, 51.0), "kappa_log10_sd": 0.87, "measurements": 0,
            "text": "No sweep has tied the noise scale to a critical batch size here.",
        },
        "exchange_rate": {"examples_per_step": 992.0, "source": "preference", "text": "balanced"},
        "preference": 0.5,
        "critical_batch": interval(992.0, 19.0, 52000.0),
        "learning_rate": {
            "current": 0.1, "recommended": 0.164, "low": 0.14, "high": 0.18, "rule": "noise-scale rule",
            "candidates": [0.082, 0.164, 0.328], "text": "SGD, noise-scale rule: the centre of a short search.",
        },
        "example_efficiency": shares,
        "step_efficiency": shares,
        "predicted": {"steps_factor": interval(0.06, 0.03, 0.4), "examples_factor": interval(1.9, 1.03, 13.0)},
        "waste": {
            "examples": interval(12000.0, 9000.0, 15000.0), "fraction": interval(0.12, 0.09, 0.15), "covered": 0.93,
            "usd": None, "text": "predicted, by the noise scale at each moment",
        },
        "warnings": [{"code": "uncalibrated", "text": "No sweep has tied the noise scale to a critical batch size."}],
        "next_step": "Confirm it with a short branch from a checkpoint.",
        "rescaling": [{
            "field": "weight_decay", "before": 0.1, "after": 0.2, "rule": "linear", "holds_for": "AdamW",
            "is_in_range": True, "is_verified": False, "source": None, "alternative": None, "text": "",
        }],
        "limited": {"batch_size": 1024.0, "binding": [], "text": "No limit binds."},
        "schedule": {
            "stages": [
                {"step": 400, "examples": 12800.0, "num_steps": 310.5, "batch_size": 512, "learning_rate": 0.14},
                {"step": 711, "examples": 171776.0, "num_steps": 40.0, "batch_size": 1024, "learning_rate": 0.16},
            ],
            "growth_exponent": 0.4, "gamma": 0.97, "saving": 0.008, "hysteresis": 1.4,
            "why": "The noise scale has gone as progress^0.40.",
        },
        "schedule_missing": None,
    } | fields  # fmt: skip


class RepeatingServer:
    """Stands in for `HttpServer`: the same answer each time, or none.

    Attributes:
        asked: Path and query of each request.
    """

    def __init__(self, status: int = 200, body: object = None, *, is_away: bool = False) -> None:
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []
        self.is_away = is_away
        self._status = status
        self._text = body if isinstance(body, str) else json.dumps(make_answer() if body is None else body)
        self.num_open = 0

    def read(self, address: str) -> tuple[int, str]:
        parts = urlsplit(address)
        self.asked.append((parts.path, parse_qsl(parts.query)))
        if self.is_away:
            raise TransportError("no answer from http://fake: connection refused")
        return self._status, self._text

    def close(self) -> None:
        self.num_open -= 1

    def open(self) -> "RepeatingServer":
        self.num_open += 1
        return self


def asks(http: RepeatingServer, now: Callable[[], float] = lambda: 0.0) -> RecommendingServer:
    """What asks that server."""
    return RecommendingServer(Config(url="http://fake"), http.open, now)  # type: ignore[arg-type]
