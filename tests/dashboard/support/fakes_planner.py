"""What the REST API would say to a planner: one made-up trade-off, in the shape of docs/rest.md, section Trade-off."""

import math
from collections.abc import Mapping
from typing import Any

from fakes_sweeps import interval

CRITICAL, MIN_STEPS, STEP_SECONDS, PRESENT, DEVICES, PRICE = 1490.0, 30_500.0, 0.62, 512.0, 8, 2.4
BATCHES = [64 * 2 ** (k / 4) for k in range(41)]
SPREAD = 1.15
LIMIT_WORDS = {
    "seconds": ("deadline", "misses the deadline", "deadline", "hours"),
    "usd": ("budget", "exceeds the budget", "budget", "usd"),
    "devices": ("number of devices", "does not fit the devices", None, None),
}
"""Name, what a batch outside does, role and quantity, as the real API says them."""


def tradeoff_json(query: Mapping[str, str] | None = None) -> dict[str, Any]:
    """To loss 2.75: 1,536 sequences are best; S_min 30.5k steps of 0.62 s, a device for every 64 sequences."""
    asked = dict(query or {})
    has_plan, has_price = "without" not in asked.get("task", ""), "free" not in asked.get("task", "")
    share = float(asked.get("spot_price_share", 1.0))
    price = float(asked.get("usd_per_device_hour", PRICE)) * share if has_price else None
    stretch = 1.1 if "spot_price_share" in asked else 1.0
    limits = limits_json(asked, price, stretch)
    low = max([limit["low"] or 0.0 for limit in limits], default=0.0)
    high = min([limit["high"] for limit in limits if limit["high"] is not None], default=math.inf)
    best = 1536.0 * 4 ** (float(asked.get("preference", 0.5)) - 0.5)
    batch = None if low > high else min(max(best, low), high)

    def at(size: float) -> dict[str, Any]:
        return row_json(size, limits, price, stretch, has_plan=has_plan)

    if batch is None:
        limits = [limit | {"is_binding": limit["kind"] in ("seconds", "usd")} for limit in limits]
    binding = [limit["kind"] for limit in limits if limit["is_binding"]]
    return {
        "critical_batch": interval(CRITICAL, 1.3),
        "critical_batch_text": "From 3 sweeps and this run's noise scale.",
        "example": "sequence",
        "unit": "tokens",
        "units_per_example": 1024.0,
        "target": f"loss {asked.get('sweep_target', '2.75')}",
        "targets": {"metric": "loss", "values": [2.75, 3.0]} if "task" in asked else None,
        "min_steps": MIN_STEPS if has_plan else None,
        "min_examples": MIN_STEPS * CRITICAL if has_plan else None,
        "examples_per_step": CRITICAL,
        "price_text": "balanced",
        "best_batch": interval(best, 1.14),
        "limited_batch": batch,
        "limited_interval": None if batch is None else interval(batch, 1.14),
        "recommended": None if batch is None else at(float(round(batch))),
        "present": at(PRESENT),
        "binding": binding,
        "limit_text": "No limit binds." if batch is not None else "18 h need 614 or more. 350 USD allow 287 or less.",
        "limits": limits,
        "step": {
            "batch_size": PRESENT,
            "seconds": STEP_SECONDS,
            "num_devices": DEVICES,
            "usd_per_device_hour": price,
            "are_devices_added": True,
        },
        "assumes": "Devices are added with the batch, so a step takes the same time at any batch.",
        "rows": [at(size) for size in BATCHES],
        "what_ifs": what_ifs_json(at, batch, low, high),
        "growth": 0.0,
        "policies": policies_json(at(1536.0)) if has_plan else [],
        "policies_missing": None if has_plan else "Schedules need a target: give steps and at_batch.",
        "beyond": beyond_json(at, batch, int(asked.get("max_devices", 96)), is_assumed="max_devices" not in asked),
    }


def beyond_json(at: Any, batch: float | None, there: int, *, is_assumed: bool) -> dict[str, Any]:
    filled = interval(CRITICAL / 64, 1.3)
    nothing = {"num_devices": None, "is_assumed": False, "num_used": None, "of_critical_batch": filled, "ways": []}
    nothing |= {"search": None, "larger_model": None, "larger_model_text": "", "missing": "Needs a batch."}
    if batch is None:
        return nothing
    used = math.ceil(batch / 64)
    best = max(there // used, 1)
    ways = [way_json(at, there, number, used if number == best else there // number) for number in sorted({1, 2, best})]
    row = at(float(round(batch)))
    return nothing | {
        "num_devices": there,
        "is_assumed": is_assumed,
        "num_used": used,
        "ways": [way | {"is_best": way["num_runs"] == best} for way in ways],
        "search": {"num_trials": 59, "num_rounds": math.ceil(59 / best), "hours": row["hours"], "usd": row.get("usd")},
        "larger_model": {
            "times": there / used,
            **{name: interval(3.1, 1.2) for name in ("critical_batch", "hours", "device_hours")},
        },
        "larger_model_text": "At as many tokens a parameter B_crit goes as tokens^0.44.",
        "missing": None,
    }


def way_json(at: Any, there: int, number: int, each: int) -> dict[str, Any]:
    row = at(64.0 * each)
    return {
        "num_runs": number,
        "num_devices": each,
        "num_idle": there - number * each,
        "row": row,
        "efficiency": interval(CRITICAL / (CRITICAL + row["batch_size"]), 1.1),
        "times_as_many": interval(number / 2 + 0.5, 1.1),
        "runs_per_day": None if row["hours"] is None else interval(24 * number / row["hours"]["value"], SPREAD),
        "best_of": 0.0 if number == 1 else 0.56,
        "chance_of_top": 1 - 0.95**number,
    }


def row_json(
    size: float, limits: list[dict[str, Any]], price: float | None, stretch: float, *, has_plan: bool
) -> dict[str, Any]:
    steps = MIN_STEPS * (1 + CRITICAL / size)
    hours = steps * STEP_SECONDS * stretch / 3600
    devices = size / 64
    known = {"steps": steps, "examples": steps * size, "hours": hours, "device_hours": hours * devices}
    known |= {} if price is None else {"usd": hours * devices * price}
    return {
        "batch_size": size,
        "num_devices": devices,
        "steps_factor": interval(1 + CRITICAL / size, SPREAD),
        "examples_factor": interval(1 + size / CRITICAL, SPREAD),
        **{name: interval(value, SPREAD) if has_plan else None for name, value in known.items()},
        "regret": 0.0,
        "breaks": [one["kind"] for one in limits if size < (one["low"] or 0.0) or size > (one["high"] or math.inf)],
        "is_pareto": True,
    }


def limits_json(asked: Mapping[str, str], price: float | None, stretch: float) -> list[dict[str, Any]]:
    found = []
    if "max_hours" in asked:
        steps = float(asked["max_hours"]) * 3600 / STEP_SECONDS / stretch
        found.append(limit_json("seconds", float(asked["max_hours"]), low=MIN_STEPS * CRITICAL / (steps - MIN_STEPS)))
    if "max_usd" in asked and price is not None:
        examples = float(asked["max_usd"]) * 3600 * 64 / (price * STEP_SECONDS * stretch)
        found.append(limit_json("usd", float(asked["max_usd"]), high=examples / MIN_STEPS - CRITICAL))
    if "max_devices" in asked:
        found.append(limit_json("devices", float(asked["max_devices"]), high=64 * float(asked["max_devices"])))
    return found


def limit_json(kind: str, asked: float, *, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    moves = (low is not None and low > 1536) or (high is not None and high < 1536)
    said = dict(zip(("name", "breaks", "role", "quantity"), LIMIT_WORDS[kind], strict=True))
    found = {"kind": kind, **said, "asked": asked, "low": low, "high": high, "is_possible": True, "is_binding": moves}
    return {**found, "text": f"The {kind}."}


def what_ifs_json(at: Any, batch: float | None, low: float, high: float) -> list[dict[str, Any]]:
    cheapest = {
        "name": "cheapest",
        "row": at(float(math.ceil(max(low, 64.0)))),
        "text": "The cheapest within the deadline.",
    }
    fastest = {
        "name": "fastest",
        "row": at(float(math.floor(min(high, 16_384.0)))),
        "text": "The fastest within the budget.",
    }
    if batch is None:
        return [cheapest, fastest]
    none = {"name": "half_the_budget", "row": None, "text": "No batch of a whole device costs 200 USD or less."}
    twice = {"name": "twice_the_devices", "row": at(2 * batch), "text": "Twice the devices, twice the batch."}
    return [twice, none, cheapest, fastest]


def policies_json(row: dict[str, Any]) -> list[dict[str, Any]]:
    regret = {
        "policy": "keep",
        "median": 2.337,
        "p90": 7.0,
        "median_right": 0.107,
        "p90_right": 0.4124,
        "num_runs": 168,
        "num_runs_right": 14,
        "source": "docs/policies.md, held-out tasks, constant rate",
    }
    taken = {name: row.get(name) for name in ("steps", "examples", "hours", "usd")}
    constant = {"name": "constant", "first_batch": 1490.0, "last_batch": 1490.0, "relative_cost": 1.0, **taken}
    ramp = {"name": "fixed_ramp", "first_batch": 93.0, "last_batch": 1490.0, "relative_cost": 1.08, **taken}
    own = {"name": "noisescale", "first_batch": None, "last_batch": None, "relative_cost": None}
    return [
        {**constant, "measured_regret": regret, "text": "The best constant batch, √(r B_crit)."},
        {**ramp, "measured_regret": None, "text": "From a sixteenth of the best batch to it."},
        {**own, "measured_regret": {**regret, "median": 0.8048, "p90": 4.525}, "text": "Decides by what a run shows."},
    ]
