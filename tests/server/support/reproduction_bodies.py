"""Bodies of POST /api/v1/reproductions: of the first command as it writes them, of the second made up."""

import json
from functools import cache
from pathlib import Path
from typing import Any

CLAIMS = Path(__file__).with_name("claims.json")
"""Summaries of tasks that were not run, by their number; tests/contract holds them against what writes them."""


def claim_summary(tasks: str = "6") -> Any:
    """Of so many tasks, B_crit and noise scale rising, and of one that does not count unless all do."""
    return json.loads(_claim_text(tasks))


@cache
def _claim_text(tasks: str) -> str:
    return json.dumps(json.loads(CLAIMS.read_text())[tasks])


def claim_body(**changes: Any) -> dict[str, Any]:
    found = changes.pop("claim", None) or claim_summary()
    return {"project": "reproduce", "effort": "quick", "seed": 0, "version": "0.1.0", "claim": found, **changes}


def policy(name: str, kind: str = "all", **changes: Any) -> dict[str, Any]:
    numbers = {"runs": 84, "median": 80.0, "p90": 452.0, "added": 3.0, "relative": 0.62, "low": 0.51, "high": 0.79}
    return {"tasks": "held out", "rate": "constant", "policy": name, "kind": kind, **numbers, "missed": 0.1, **changes}


def half_way(share: str, **changes: Any) -> dict[str, Any]:
    names = ("shown", "resolved", "holds", "holds_low", "holds_high", "decided", "decided_low", "decided_high", "right")
    regrets = [f"{who}_{what}" for who in ("recommended", "followed", "kept") for what in ("median", "p90")]
    numbers = dict.fromkeys(names, 0.5) | {"log_error": 1.1} | dict.fromkeys(regrets, 40.0)
    words = {"rate": "constant", "share": share, "noise": "measured, latest window", "kappa": "published spread"}
    return {**words, "runs": 120, **numbers, **changes}


def advice_body(**changes: Any) -> dict[str, Any]:
    policies = [policy(name, kind) for name in ("keep", "ours") for kind in ("all", "right")]
    found = {"policies": policies, "recommendations": [half_way("50 %", holds=None, right=None)]}
    return {"project": "reproduce", "effort": "full", "seed": 3, "version": "0.1.0", "advice": found, **changes}
