"""The run that Learn explains things on: a clear one of this server, or a made-up one where there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from noisescale_dashboard.answers.common import Estimate, Interval, Run
from noisescale_dashboard.answers.series import NoiseScaleSeries, Points
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.number_format import count, share, significant, span

NUM_POINTS = 60
NUM_UNRESOLVED = 4
STEPS_PER_POINT = 500
BATCH = 256.0
FIRST, LAST = 60.0, 1024.0
"""Noise scale of the made-up run at its first and at its last step."""


@dataclass(frozen=True, slots=True)
class Example:
    """What the sentences and figures of the page need of a run; batches in examples."""

    noise_scale: Interval
    batch: float
    noun: str = "examples"
    run_id: str | None = None
    name: str = ""


MADE_UP = Example(Interval(LAST, 820.0, 1310.0, 0.95), BATCH)


def newest_clear(runs: Sequence[Run]) -> Example:
    """The first of these runs that has a noise scale and a batch, and has not diverged; else the made-up one."""
    for run in runs:
        noise = run.noise_scale
        if noise.state == "resolved" and noise.value and run.global_batch and run.divergence is None:
            estimate = Interval(noise.value, noise.low, noise.high, noise.level)
            return Example(estimate, run.global_batch, sentences.noun_of(run), run.id, run.name)
    return MADE_UP


def stored(example: Example) -> dict[str, Any]:
    """The example as the page keeps it."""
    noise = example.noise_scale
    return {
        "value": noise.value, "low": noise.low, "high": noise.high, "batch": example.batch, "noun": example.noun,
        "run_id": example.run_id, "name": example.name,
    }  # fmt: skip


def read(kept: Mapping[str, Any]) -> Example:
    """The example that `stored` gave."""
    noise = Interval(kept["value"], kept["low"], kept["high"], 0.95)
    return Example(noise, kept["batch"], kept["noun"], kept["run_id"], kept["name"])


def told(example: Example) -> str:
    """The noise scale and the batch of an example, to follow its name."""
    noise = example.noise_scale
    between = span(noise.low, noise.high)
    return (
        f" has a noise scale of {significant(noise.value)} {example.noun} (95 %: {between}) and a batch of "
        f"{count(example.batch)}. {at(example.batch, example)}"
    )


def at(batch: float, example: Example) -> str:
    """What a batch of this size does with an example's noise scale (McCandlish et al. 2018, eq. 2.5 to 2.7)."""
    noise = example.noise_scale.value or LAST
    used, step = noise / (noise + batch), batch / (noise + batch)
    fewer, more = 1 - (1 + noise / (2 * batch)) / (1 + noise / batch), (1 + 2 * batch / noise) / (1 + batch / noise) - 1
    return (
        f"With a batch of {count(batch)}, {share(used)} of each example is put to use, and a step makes {share(step)} "
        f"of the progress that the largest batch would make. Twice the batch would need {share(fewer)} fewer steps for "
        f"{share(more)} more examples, if the critical batch is the noise scale."
    )


def made_up_series() -> NoiseScaleSeries:
    """A noise scale that grows 17-fold while a run goes on, not resolved at first."""
    shares = [i / (NUM_POINTS - 1) for i in range(NUM_POINTS)]
    noise = [FIRST * (LAST / FIRST) ** part * (1 + 0.08 * ((7 * i) % 5 - 2) / 2) for i, part in enumerate(shares)]
    noise[-1] = LAST
    is_known = [i >= NUM_UNRESOLVED for i in range(NUM_POINTS)]
    points = Points(
        step=tuple(STEPS_PER_POINT * (i + 1) for i in range(NUM_POINTS)),
        examples=tuple(BATCH * STEPS_PER_POINT * (i + 1) for i in range(NUM_POINTS)),
        wall_time=tuple(60.0 * i for i in range(NUM_POINTS)),
        value=tuple(v if known else None for v, known in zip(noise, is_known, strict=True)),
        low=tuple((0.8 if known else 0.5) * v for v, known in zip(noise, is_known, strict=True)),
        high=tuple(1.28 * v if known else None for v, known in zip(noise, is_known, strict=True)),
        state=tuple("resolved" if known else "unresolved" for known in is_known),
        reason=(None,) * NUM_POINTS,
        value_min=(None,) * NUM_POINTS,
        value_max=(None,) * NUM_POINTS,
        loss=tuple(3.0 - 2.0 * part**0.5 for part in shares),
        global_batch=(BATCH,) * NUM_POINTS,
        lr=(None,) * NUM_POINTS,
    )
    end = MADE_UP.noise_scale
    latest = Estimate("resolved", end.value, end.low, end.high)
    return NoiseScaleSeries(points, latest, latest, num_points=NUM_POINTS)
