"""What the REST API would recommend for a made-up run, in the shape of docs/rest.md."""

from collections.abc import Mapping
from typing import Any

from fakes_laws import LEARNING_RATE
from fakes_runs import FakeRun, decision_json, efficiency_json, estimate_json

UNCALIBRATED = {
    "code": "uncalibrated",
    "text": "Not calibrated for this task: the critical batch could be 7 × smaller or larger.",
}
FLAGS = "--step-batch-size-schedule 0:512 184200:1536"
"""What the schedule is for a trainer."""


def recommendation_json(run: FakeRun, preference: float, limits: Mapping[str, str] | None = None) -> dict[str, Any]:
    decision = decision_json(run, preference)
    best, noun = decision["batch_size"], run.unit if run.units_per_example == 1 else run.example + "s"
    base = {
        "run_id": run.id,
        "step": run.steps - 1,
        "unit": run.unit,
        "units_per_example": run.units_per_example,
        "decision": decision["decision"],
        "reason": decision["reason"],
        "short_reason": decision["reason"],
        "sureness": None,
        "odds": None,
        "current_batch_size": float(run.batch),
        "preference": preference,
        "calibration": {
            "state": "calibrated" if run.is_calibrated else "uncalibrated",
            "kappa": {"value": 0.97, "low": 0.57, "high": 1.65, "level": 0.95},
            "measurements": 3 if run.is_calibrated else 0,
            "kappa_log10_sd": 0.87,
            "text": "Not calibrated for this task: the critical batch could be 7 × smaller or larger.",
        },
        "exchange_rate": exchange_rate_json(limits or {}),
        "limited": None,
        "rescaling": None,
        "schedule": None,
        "schedule_missing": "The noise scale is not resolved.",
        "next_steps": [],
        "noise_scale": estimate_json(run),
        "warnings": [
            *([] if run.is_calibrated else [UNCALIBRATED]),
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
    # the real API names the limit in its headline, and nobody after it
    limit = ", your memory limit" if "num_devices" in (limits or {}) else ""
    words = {
        "increase": f"Raise the batch to {best:,}{limit}",
        "decrease": f"Lower the batch to {best:,}{limit}",
        "keep": f"Keep {run.batch:,}",
    }
    return {
        **base,
        "headline": words[decision["decision"]],
        "short_reason": short_reason(run.batch, best),
        "sureness": "likely",
        "odds": {
            "probability": 0.91,
            "saving": 0.3,
            "worst_case": 0.09,
            "present_regret": 0.5,
            "regret": 0.05,
            "assumes": "κ as in other tasks with a quarter of the plan done.",
        },
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
        },
        "learning_rate": {
            "current": LEARNING_RATE,
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
        "predictions": {
            "steps_left": 1000,
            "assumes": "Devices added with the batch, so that a step takes as long.",
            "batches": predictions(run, best, steps, examples),
        },
        "limited": limited_json(best, limits or {}),
        "schedule": schedule_json(run, best),
        "schedule_missing": None,
        "rescaling": rescaling_json(),
        "next_steps": [
            {"kind": "branch", "is_extra": True, "text": "A branch at 768 and 3,072: 400 steps, 0.5 h, $4."},
            {"kind": "sweep", "is_extra": True, "text": "A sweep of 5 runs: 40 h, $180."},
        ],
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
            "usd": None if run.number == 2 else {"value": 228.0, "low": 182.0, "high": 274.0, "level": 0.95},
            "hours": None,
            "text": "predicted",
        },
        "next_step": "Plan a sweep or a short branch at the new batch before changing the whole run.",
    }


def short_reason(now: float, best: float) -> str:
    small = f"{now:,} looks about {best / now:.2g} × too small."
    return small if best > now else f"{now:,} looks about {now / best:.2g} × too large."


def effect(steps: float, examples: float, noun: str) -> str:
    fewer = f"{100 * abs(1 - steps):.0f} % {'fewer' if steps < 1 else 'more'} steps"
    more = f"{100 * abs(examples - 1):.0f} % {'more' if examples > 1 else 'fewer'} {noun}"
    return f"{fewer}, {more} to the same loss, predicted."


def exchange_rate_json(limits: Mapping[str, str]) -> dict[str, Any]:
    if "examples_per_step" in limits:
        said = float(limits["examples_per_step"])
        return {
            "examples_per_step": said,
            "source": "examples_per_step",
            "text": f"you would spend {said:,.0f} examples to save a step",
        }
    return {"examples_per_step": 640.0, "source": "preference", "text": "balanced"}


def limited_json(best: float, limits: Mapping[str, str]) -> dict[str, Any]:
    if "num_devices" not in limits:
        free = {"binding": [], "binding_names": [], "text": "No limit binds."}
        return {"batch_size": best, "low": best / 7, "high": best * 7, **free}
    inside = best / 2
    text = f"The memory of {limits['num_devices']} devices holds {inside:,.0f} at most."
    bound = {"binding": ["memory"], "binding_names": ["memory limit"], "text": text, "possible": None}
    return {"batch_size": inside, "low": inside, "high": inside, **bound}


def schedule_json(run: FakeRun, best: float) -> dict[str, Any]:
    first = {"step": run.steps, "examples": 1e6, "num_steps": 400.0, "batch_size": best, "learning_rate": 1.04e-3}
    second = {**first, "step": run.steps + 400, "num_steps": 260.0, "batch_size": 2 * best, "learning_rate": 1.47e-3}
    why = "The noise scale has gone as progress^0.40."
    return {"stages": [first, second], "saving": 0.008, "hysteresis": 1.4, "why": why}


def rescaling_json() -> list[dict[str, Any]]:
    lr = {"field": "lr", "before": 6e-4, "after": 1.04e-3, "rule": "square root", "holds_for": "batches below φ"}
    decay = {"field": "weight_decay", "before": 0.1, "after": None, "rule": "none", "holds_for": "AdamW"}
    trusted = {"is_in_range": True, "is_verified": True, "source": "arXiv:2205.10287", "text": ""}
    return [{**lr, **trusted}, {**decay, **trusted, "is_in_range": False, "is_verified": False, "source": None}]


def predictions(run: FakeRun, best: float, steps: float, examples: float) -> list[dict[str, Any]]:
    """The rest of the plan: 1,000 steps, 50 h and 400 USD at the present batch."""

    def at(size: float, steps: float, examples: float, error: float) -> dict[str, Any]:
        def within(value: float) -> dict[str, Any]:
            return {"value": value, "low": value * (1 - error), "high": value * (1 + error), "level": 0.95}

        used = 1000.0 * run.batch * examples
        return {
            "batch_size": size,
            "is_present": size == run.batch,
            "is_recommended": size == best,
            "steps": within(1000.0 * steps),
            "examples": within(used),
            "units": within(used * run.units_per_example),
            "hours": within(50.0 * steps),
            "usd": within(400.0 * examples),
        }

    return [at(run.batch, 1.0, 1.0, 0.0), *([at(best, steps, examples, 0.1)] if best != run.batch else [])]
