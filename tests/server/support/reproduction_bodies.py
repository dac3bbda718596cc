"""Bodies of POST /api/v1/reproductions, made by what the commands make theirs with, from tasks that were not run."""

import json
from functools import cache
from typing import Any

from noisescale_lab.reproduce.claim.exact_quadratics import QuadraticCheck
from noisescale_lab.reproduce.claim.judged.findings import findings
from noisescale_lab.reproduce.claim.report.files import summary
from noisescale_lab.reproduce.claim.task_result import AdaptiveBatch
from reproduced_tasks import make_result

QUADRATIC = QuadraticCheck("quadratic_isotropic", 12, 12, 11, 31.0, 30.5, 30.5)


def claim_summary(num_tasks: int = 6) -> Any:
    """As JSON gives it back: of so many tasks, B_crit and noise scale rising, and of one that does not count."""
    return json.loads(_claim_text(num_tasks))


@cache
def _claim_text(num_tasks: int) -> str:
    results = [
        make_result(f"task_{place}", critical_batch=3.0**place, noise_scale=2.5**place, adaptive=ADAPTIVE)
        for place in range(1, num_tasks + 1)
    ]
    excluded = make_result("diabetes_linreg", exclusion="S_min 2.1 is below 5 steps")
    return json.dumps(summary(findings([*results, excluded], [QUADRATIC])), allow_nan=False)


ADAPTIVE = AdaptiveBatch(16, 128, 0.97, 1.02)


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
