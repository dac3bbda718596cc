"""What the REST API would recommend for a made-up run, in the shape of docs/rest.md."""

from typing import Any

from fakes_runs import FakeRun, decision_json, efficiency_json, estimate_json


def recommendation_json(run: FakeRun, preference: float) -> dict[str, Any]:
    decision = decision_json(run, preference)
    best, noun = decision["batch_size"], run.unit if run.units_per_example == 1 else run.example + "s"
    nothing = {"value": None, "low": None, "high": None}
    base = {
        "run_id": run.id,
        "step": run.steps - 1,
        "unit": run.unit,
        "units_per_example": run.units_per_example,
        "decision": decision["decision"],
        "reason": decision["reason"],
        "current_batch_size": float(run.batch),
        "preference": preference,
        "calibration": {
            "state": "calibrated" if run.is_calibrated else "uncalibrated",
            "kappa_log10_sd": 0.87,
            "text": "No sweep has tied the noise scale to a critical batch size here: × or ÷ 7 elsewhere.",
        },
        "exchange_rate": {"examples_per_step": 640.0, "source": "preference"},
        "noise_scale": estimate_json(run),
        "warnings": [
            {
                "code": "uncalibrated",
                "text": "No sweep has tied the noise scale to a critical batch size here: × or ÷ 7 elsewhere.",
            },
            *({"code": code, "text": text} for code, text in run.notices),
        ],
    }
    if best is None:
        return {
            **base,
            "headline": "Not enough evidence yet",
            "effect": None,
            "recommended_batch_size": None,
            "interval": None,
            "statistical_interval": None,
            "critical_batch": None,
            "learning_rate": None,
            "example_efficiency": None,
            "step_efficiency": None,
            "predicted": None,
            "waste": None,
            "warnings": [],
            "next_step": "About 9k more steps resolve it, or 8 micro-batches instead of 2: then 1.3k.",
        }
    efficiency = run.noise_scale / (run.noise_scale + run.batch)
    then = run.noise_scale / (run.noise_scale + best)
    steps, examples = (
        (1 + run.noise_scale / best) / (1 + run.noise_scale / run.batch),
        (1 + best / run.noise_scale) / (1 + run.batch / run.noise_scale),
    )
    words = {
        "increase": f"Raise the batch to {best:,}",
        "decrease": f"Lower the batch to {best:,}",
        "keep": f"Keep {run.batch:,}",
    }
    return {
        **base,
        "headline": words[decision["decision"]],
        "recommended_batch_size": best,
        "effect": effect(steps, examples, noun),
        "interval": {
            "value": run.noise_scale * 4 ** (preference - 0.5),
            "low": best / 7,
            "high": best * 7,
            "level": 0.95,
        },
        "statistical_interval": {"low": best / 1.3, "high": best * 1.3, "level": 0.95},
        "critical_batch": {
            "value": run.noise_scale,
            "low": run.noise_scale / 50,
            "high": run.noise_scale * 50,
            "level": 0.95,
            "text": "κ × noise scale, κ = 1 assumed",
        },
        "learning_rate": {
            "current": 6e-4,
            "recommended": 1.04e-3,
            "low": 9.1e-4,
            "high": 1.19e-3,
            "rule": "square root",
            "candidates": [7.4e-4, 1.04e-3, 1.47e-3],
            "text": f"{run.optimizer}, √ rule; keep warm-up the same in {run.unit}.",
        },
        "example_efficiency": {"now": efficiency_json(efficiency), "recommended": efficiency_json(then)},
        "step_efficiency": {"now": efficiency_json(1 - efficiency), "recommended": efficiency_json(1 - then)},
        "predicted": {
            "steps_factor": {"value": steps, "low": steps * 0.9, "high": steps * 1.1},
            "examples_factor": {"value": examples, "low": examples * 0.93, "high": examples * 1.08},
        },
        "predictions": {"steps_left": 1000, "assumes": "", "batches": predictions(run.batch, best, steps, examples)},
        "waste": {
            "examples": {
                "value": run.steps * run.batch * (1 - efficiency),
                "low": run.steps * run.batch * (1 - efficiency) * 0.8,
                "high": run.steps * run.batch * (1 - efficiency) * 1.2,
            },
            "fraction": {
                "value": 1 - efficiency,
                "low": (1 - efficiency) * 0.8,
                "high": min(1, (1 - efficiency) * 1.2),
            },
            "usd": nothing if run.number == 2 else None,
            "text": "predicted",
        },
        "next_step": "Plan a sweep or a short branch at the new batch before changing the whole run.",
    }


def effect(steps: float, examples: float, noun: str) -> str:
    fewer = f"{100 * abs(1 - steps):.0f} % {'fewer' if steps < 1 else 'more'} steps"
    more = f"{100 * abs(examples - 1):.0f} % {'more' if examples > 1 else 'fewer'} {noun}"
    return f"{fewer}, {more} to the same loss, predicted."


def predictions(batch: float, best: float, steps: float, examples: float) -> list[dict[str, Any]]:
    """The rest of the plan: 50 h and 400 USD at the present batch."""

    def at(size: float, hours: float, usd: float, error: float) -> dict[str, Any]:
        return {
            "batch_size": size,
            "is_present": size == batch,
            "is_recommended": size == best,
            "hours": {"value": hours, "low": hours * (1 - error), "high": hours * (1 + error), "level": 0.95},
            "usd": {"value": usd, "low": usd * (1 - error), "high": usd * (1 + error), "level": 0.95},
        }

    return [at(batch, 50.0, 400.0, 0.0), *([at(best, 50.0 * steps, 400.0 * examples, 0.1)] if best != batch else [])]
