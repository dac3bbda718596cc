"""A run for the tests of an advice: noise scale 1,000 at batch 256, 8 devices, 2 s a step, 500 of 5,500 steps."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from noisescale_core.advice.evidence.kappa import Kappa
from noisescale_core.advice.parts.parts import RunSoFar, SpentPoint
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State

NOISE_SCALE, BATCH = 1000.0, 256.0
STEPS_LEFT = 5000

KNOWN = Kappa(log_mean=0.04, log_sd=math.log(1.2), measurements=2, said="Calibrated here on 2 sweeps: κ 1, ×/÷ 1.2.")
"""κ = 1 for the noise scale of a moment so early in a run, and nearly sure of it."""

RESOLVED = NoiseScaleEstimate(
    State.RESOLVED, NOISE_SCALE, 900.0, 1100.0, 0.95, 9.0, None, None, 64, 16, 1.0, 0.1, 0.001, 0.0001
)


def stretch(batch: float = BATCH, seconds: float | None = 20.0, scale: float = 1.0, **changes: Any) -> SpentPoint:
    """Ten steps at a resolved noise scale."""
    found = SpentPoint(
        examples=10 * batch * scale,
        batch_size=batch * scale,
        value=NOISE_SCALE * scale,
        low=900.0 * scale,
        high=1100.0 * scale,
        num_steps=10,
        seconds=seconds,
        learning_rate=0.1,
    )
    return replace(found, **changes)


def advised_run(*, spent: Sequence[SpentPoint] | None = None, scale: float = 1.0, **changes: Any) -> RunSoFar:
    """The run, its examples counted `scale` times as many."""
    estimate = replace(RESOLVED, value=NOISE_SCALE * scale, low=900.0 * scale, high=1100.0 * scale)
    fields = {
        "noise_scale": estimate,
        "batch_size": BATCH * scale,
        "optimizer": "SGD",
        "learning_rate": 0.1,
        "example": "image",
        "unit": "images",
        "spent": [stretch(scale=scale)] * 50 if spent is None else spent,
        "usd_spent": 8 * 3.0 * 1000 / 3600,
        "steps_done": 500,
        "planned_steps": 500 + STEPS_LEFT,
        "num_devices": 8,
        "usd_per_device_hour": 3.0,
    }
    return RunSoFar(**(fields | changes))
