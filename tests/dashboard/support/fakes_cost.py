"""Answers of the API about time, money and compute, as the server gives them for three trainings and six runs."""

from typing import Any

TECHNIQUES = [
    {"name": "mixed precision", "answer": "yes", "basis": "config: bf16 = True"},
    {"name": "batch ramp", "answer": "no", "basis": "logged batch 256 to 256"},
    {"name": "progressive resizing", "answer": "unknown", "basis": "put 'progressive_resizing' into the config"},
]
NAMES = ("ResNet152 · 8 K80", "ResNet50 · p3.16xlarge", "ResNet50 · half of a pod")
HOURS, USD, DAYS = (244.0, 14.6, 0.5), (1112.6, 358.2, None), ("2017-10-27", "2018-01-31", "2018-04-18")
NO_PRICE = "no price is known, so it has no place between time and money"


def _training(place: int, origin: str) -> dict[str, Any]:
    usd = USD[place]
    return {
        "key": f"{origin} {place}", "name": NAMES[place], "origin": origin, "day": DAYS[place], "hours": HOURS[place],
        "usd": usd, "price_said": "as submitted" if usd else "no price submitted", "device": "V100", "num_devices": 8,
        "device_hours": 8 * HOURS[place], "batch_size": None, "passes": 90.0, "software": "TensorFlow",
        "model": "ResNet", "hardware": "8 V100", "is_on_front": usd is not None and place == 1, "is_record": True,
        "excluded": None if usd else NO_PRICE,
    }  # fmt: skip


def _common() -> dict[str, Any]:
    records = [
        {"key": str(place), "name": NAMES[place], "day": DAYS[place], "value": HOURS[place],
         "of_baseline": HOURS[0] / HOURS[place], "of_previous": HOURS[max(place - 1, 0)] / HOURS[place]}
        for place in range(3)
    ]  # fmt: skip
    parts = [
        {"cause": "number of devices", "times": 1.0, "basis": "8 → 8"},
        {"cause": "batch and algorithm", "times": 1.3, "basis": "107 → 81 passes"},
        {"cause": "kind and use of devices", "times": 12.6, "basis": "no pair of entries differs in these alone"},
    ]
    return {
        "front": ["dawnbench 1"],
        "records": records,
        "improvement": {"baseline": NAMES[0], "best": NAMES[2], "before": 244.0, "after": 0.5, "times": 488.0},
        "improvement_usd": {"baseline": NAMES[0], "best": NAMES[1], "before": 1112.6, "after": 358.2, "times": 3.1},
        "same_hardware": [{"device": "V100", "num_devices": 8, "times": 29.2, "records": records[1:]}],
        "steps": [{"before": NAMES[0], "after": NAMES[1], "times": 16.7, "parts": parts}],
    }


def submissions_json() -> dict[str, Any]:
    """As GET /cost/submissions answers."""
    return {
        **_common(),
        "task": "ImageNet",
        "metric": "top5Accuracy",
        "target": 93.0,
        "until": None,
        "rows": [_training(place, "dawnbench") for place in (2, 1, 0)],
        "device_ratios": [],
        "factors": [
            {"said": "times faster", "published": 809.0, "computed": 808.9, "basis": "244.0 h to 0.3 h"},
            {"said": "times cheaper, on demand", "published": None, "computed": 23.0, "basis": "1,113 USD to 48 USD"},
        ],
        "source": "DAWNBench's entries.",
    }


def leaderboard_json() -> dict[str, Any]:
    """As GET /cost/leaderboard answers."""
    own = {
        "run_id": "00000000-0000-4000-8000-000000000001", "project": "vision", "task": "imagenet", "step": 900,
        "value": 0.91, "paused_hours": 1.5, "on_spot": {"hours": 15.0, "usd": 110.0, "pays": True},
        "techniques": TECHNIQUES, "engineering_hours": 6.0, "change": "mixed precision",
    }  # fmt: skip
    return {
        **_common(),
        "metric": "accuracy",
        "target": 0.9,
        "goal": "max",
        "rows": [{**_training(place, "own"), **own} for place in (2, 1, 0)],
        "num_runs": 4,
        "num_reached": 3,
        "num_unpriced": 1,
        "why_unpriced": NO_PRICE,
        "assumptions": ["Hours by the clock."],
    }


def growth_json() -> dict[str, Any]:
    """As GET /cost/growth answers."""
    runs = [
        {"run_id": f"00000000-0000-4000-8000-00000000000{place}", "name": f"run {place}", "project": "vision",
         "day": f"2026-0{place + 1}-01", "compute": {"pf_days": 0.01 * 2**place, "basis": "parameters",
         "said": "6 × 1e9 parameters × 2e9 units"}, "usd": 10.0 * 2**place, "price_said": "2 USD a device-hour"}
        for place in range(6)
    ]  # fmt: skip

    def growth(slope: float) -> dict[str, Any]:
        months = {"value": 12 / slope, "low": 12 / (slope + 1), "high": None, "level": 0.95}
        doublings = {"value": slope, "low": slope - 1, "high": slope + 1, "level": 0.95}
        return {"doublings_per_year": doublings, "months": months, "at_end": 0.32, "num": 6}

    return {
        "runs": runs,
        "num_left_out": 1,
        "why_left_out": "neither parameters with examples nor a device whose peak is known",
        "growth": growth(12.0),
        "spending": growth(8.0),
        "per_usd": growth(4.0),
        "of_priced": growth(12.0),
        "lines": [{"months": 3.4, "at_start": 0.1, "at_end": 0.32}, {"months": 3.5, "at_start": 0.11, "at_end": 0.32}],
        "published_source": 'OpenAI, "AI and Compute" (2018)',
        "peaks_source": "Makers' data sheets.",
        "devices": [
            {
                "device": "V100",
                "names": ["V100"],
                "year": 2017,
                "peak_tflops": 125.0,
                "format": "FP16",
                "memory_gb": 32.0,
            },
        ],
        "device_trend": {"peak": growth(0.8), "memory": None},
        "level": 0.95,
    }


def search_cost_json() -> dict[str, Any]:
    """As GET /sweeps/{sweep_id}/search-cost answers."""
    best_of = [
        {"num_trials": n + 1, "median": steps, "low": 100.0, "high": None, "none_reaches": 0.0}
        for n, steps in enumerate((200.0, 120.0, 100.0))
    ]
    order = {"random": [200.0, 120.0, 100.0], "grid": [None, 105.0, 100.0], "informed": [100.0, 100.0, 100.0]}
    fewer = [(1, None, 60.0, None), (2, 180.0, 90.0, 400.0), (3, 256.0, 256.0, 256.0)]
    return {
        "unit": "images",
        "target": 0.5,
        "bill": {
            "num_trials": 9, "num_infeasible": 1, "num_timed": 6, "hours": 3.0, "device_hours": 12.0, "usd": 24.0,
            "num_priced": 4, "prices_said": ["2 USD a device-hour: the run says"], "winner_hours": 0.25,
            "winner_usd": 2.0,
        },
        "sizes": [
            {"batch_size": 64.0, "num_rates": 3, "best_rate": 0.1, "best_steps": 100.0, "best_of": best_of,
             "strategies": order, "foreseen": None},
            {"batch_size": 256.0, "num_rates": 1, "best_rate": None, "best_steps": None,
             "best_of": [{"num_trials": 1, "median": None, "low": None, "high": None, "none_reaches": 1.0}],
             "strategies": {"random": [None], "grid": [None], "informed": [None]}, "foreseen": 0.2},
        ],
        "critical_batches": [
            {"num_trials": n, "median": median, "low": low, "high": high, "without_fit": 0.0}
            for n, median, low, high in fewer
        ],
    }  # fmt: skip


def time_json() -> dict[str, Any]:
    """As GET /runs/{run_id}/time answers."""
    return {
        "shares": {"accelerator": 0.6, "data": 0.25},
        "missing": ["time/host", "time/network"],
        "unexplained": 0.15,
        "levers": [
            {"share_of": "data", "share": 0.25, "most_times": 1.33, "what": "more loader workers", "effort": 1,
             "effort_said": "a setting"},
            {"share_of": "accelerator", "share": 0.6, "most_times": 2.5, "what": "mixed precision", "effort": 3,
             "effort_said": "other machines"},
        ],
        "techniques": TECHNIQUES,
        "memory": {"device": "A100", "memory_gb": 80.0, "micro_batch": 32.0, "beyond": None,
                   "said": "Checkpointing computes 33% more in a pass."},
    }  # fmt: skip
