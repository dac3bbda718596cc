"""What the REST API would say of laws through made-up runs and sweeps, in the shapes of docs/rest.md."""

import math
import random
from typing import Any

from fakes_runs import FakeRun
from fakes_sweeps import FakeSweep, best_rate, interval


def learning_rates_json(sweep: FakeSweep, target: float) -> dict[str, Any]:
    rates = []
    for size in sweep.batch_sizes:
        best, is_edge = best_rate(sweep, size), size in sweep.edge
        rates.append(
            {
                "batch_size": size,
                "lr": best,
                "low": None if is_edge else best / 2**0.5,
                "high": best * 2**0.5,
                "steps": 1000.0,
                "num_rates": 3,
                "num_as_good": 1,
                "is_at_grid_edge": is_edge,
            }
        )
    min_steps, min_examples = list(sweep.ladder.values())[-1]
    smallest, largest = min(sweep.batch_sizes), max(sweep.batch_sizes)
    points = []
    for k in range(33):
        size = smallest / 2 * (4 * largest / smallest) ** (k / 32)
        outside = not smallest <= size <= largest
        points.append(
            {
                "batch_size": size,
                "lr": interval(2.4e-3 / (1 + min_examples / min_steps / size) ** 0.5, 1.25),
                "is_extrapolated": outside,
                "is_past_critical": size > largest,
            }
        )
    curves = [
        {"name": "saturating", "formula": "ε = ε* / (1 + B*/B)^α", "has_support": True, "points": points},
        {"name": "power", "formula": "ε = c B^p", "has_support": False, "points": []},
    ]
    claims = [
        {
            "text": "Adam: far below B_crit the best learning rate goes as B^α with α about 0.4 to 0.8.",
            "estimate": interval(0.5, 1.2),
            "holds": True,
        },
        {
            "text": "Adam: above B_crit the best learning rate grows no further.",
            "estimate": None,
            "holds": None,
        },
    ]
    return {
        "sweep_id": sweep.id,
        "metric": sweep.metric,
        "optimizer": sweep.optimizer,
        "unit": sweep.unit,
        "level": 0.95,
        "target": target,
        "rates": rates,
        "curves": curves,
        "can_tell": True,
        "explanation": "The learning rate saturates: it grows as a power of B and then stays.",
        "critical_batch": interval(min_examples / min_steps, 1.18),
        "claims": claims,
        "warnings": ["Beyond the largest batch size tuned the curve is past B_crit: tune it."],
    }


def forecast_json(sweep: FakeSweep) -> dict[str, Any]:
    if len(sweep.ladder) < 3:
        return {"law": None, "reason": "A law needs three targets with a fit.", "curve": [], "warnings": []}
    lowest = min(sweep.ladder)
    curve = []
    for k in range(40):
        x = 3.35 - k * (3.35 - 0.9 * lowest) / 39
        value = 992 * (x / lowest) ** -10.3
        spread = 1.1 + max(0.0, lowest - x)
        curve.append(
            {
                "x": x,
                "value": value,
                "low": value / spread,
                "high": value * spread,
                "is_extrapolated": x < lowest,
                "is_far": False,
            }
        )
    law = {"power": {"value": -10.3, "low": -11.9, "high": -8.8, "level": 0.95}, "explanation": "A power law fits."}
    return {
        "law": law,
        "reason": None,
        "curve": curve,
        "warnings": [{"code": "far", "text": "Targets below 2.6 are far from those seen."}],
    }


def run_forecast_json(run: FakeRun) -> dict[str, Any]:
    """A power law of the loss, which goes from 4 to 2.85; nothing for a run that is not resolved."""
    if not run.resolved:
        return {
            "law": None,
            "reason": "A law needs five resolved windows.",
            "observed": [],
            "curve": [],
            "warnings": [],
        }
    rng = random.Random(run.number)

    def value(loss: float) -> float:
        return float(run.noise_scale * (loss / 2.85) ** -6.1)

    observed = []
    for k in range(40):
        loss = 4.0 - 1.15 * k / 39
        seen = value(loss) * math.exp(0.08 * rng.gauss(0, 1))
        observed.append({"x": loss, "value": seen, "low": seen / 1.2, "high": seen * 1.2})
    curve = [
        {
            "x": loss,
            "value": value(loss),
            "low": value(loss) / (1.05 + max(0.0, 2.85 - loss)),
            "high": value(loss) * (1.05 + max(0.0, 2.85 - loss)),
            "is_extrapolated": loss < 2.85,
        }
        for loss in (4.0 - 1.43 * k / 59 for k in range(60))
    ]
    law = {"power": {"value": -6.1, "low": -7.0, "high": -5.3, "level": 0.95}, "explanation": "A power law fits best."}
    return {"law": law, "reason": None, "observed": observed, "num_cold": 3, "curve": curve, "warnings": []}


LEARNING_RATE = 6e-4
"""As the recommendation has it."""


def learning_rate_json(run: FakeRun) -> dict[str, Any]:
    """A rate that turns out too low by a factor of about 4; nothing for a run that is not resolved."""
    nothing = dict.fromkeys(
        ("octaves", "low", "high", "factor", "factor_low", "factor_high", "probability", "ratio", "ratio_low",
         "ratio_high", "push", "push_low", "push_high", "progress", "verdict", "step", "path", "promised_fall",
         "promised_fall_low", "promised_fall_high", "kept_share", "kept_share_low", "kept_share_high")
    )  # fmt: skip
    said = {
        "run_id": run.id,
        "optimizer": "AdamW",
        "learning_rate": LEARNING_RATE,
        "schedule": "constant",
        "headline": "No verdict on the learning rate",
        "reason": "The path of the parameters is not measured.",
        "points": [],
        "num_promised_updates": 0,
        "kept_share_reason": "What the updates promise is not measured.",
    }
    if not run.resolved:
        return nothing | said
    points = [_rate_point(step) for step in range(20, 1001, 20)]
    last = points[-1]
    verdict = {
        "verdict": "too_low",
        "headline": "Learning rate: too low",
        "reason": "Over 1,000 steps the parameters got 1.4 × as far as a random walk of the same updates would.",
        "factor": 4.0,
        "factor_low": 1.6,
        "factor_high": 10.0,
        "probability": 0.99,
        "progress": 0.8,
        "promised_fall": 1.8,
        "promised_fall_low": 1.6,
        "promised_fall_high": 2.0,
        "num_promised_updates": 990,
        "kept_share": 0.87,
        "kept_share_low": 0.8,
        "kept_share_high": 0.94,
        "kept_share_reason": None,
        "path": {
            "start": 0,
            "num_updates": 1000,
            "sum_update_sq_norm": 2.0,
            "update_sq_norm_variance": 1e-4,
            "sq_distance": 50.0,
            "momentum": 0.9,
        },
    }
    names = ("step", "octaves", "low", "high", "ratio", "ratio_low", "ratio_high")
    return nothing | said | {name: last[name] for name in names} | verdict | {"points": points}


def _rate_point(step: int) -> dict[str, Any]:
    """No verdict before step 100; later about two octaves too low, ever surer."""
    ratio, half = -0.4, 1.3 + 60 / step
    octaves = -2.0 - 20 / step if step >= 100 else None
    return {
        "step": step,
        "learning_rate": LEARNING_RATE,
        "verdict": None if octaves is None else "too_low",
        "ratio": ratio,
        "ratio_low": ratio - 0.1,
        "ratio_high": ratio + 0.1,
        "octaves": octaves,
        "low": None if octaves is None else octaves - half,
        "high": None if octaves is None else octaves + half,
    }
