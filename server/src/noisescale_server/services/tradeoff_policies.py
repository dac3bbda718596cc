"""Schedules of the batch side by side: what each takes to the same target, were the noise scale to go as forecast.

Every policy is run on one profile φ(s) over progress s, by 1 + φ / B steps and B + φ examples for each ideal step
(McCandlish et al. 2018, arXiv:1812.06162, eq. D.1), so only the batches differ: no policy is charged for a
learning rate that does not suit it, and none is credited for one that does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from noisescale.theory.advice.pace import Pace
from noisescale.theory.cost import SECONDS_PER_HOUR
from noisescale.theory.ramps import LinearRamp, should_double
from noisescale.theory.schedule import Outcome, Stretch, outcome, scheduled_batch, trade_off_of
from noisescale.theory.stages import HYSTERESIS
from noisescale.theory.trade_off import TradeOff, best_batch

NUM_PIECES = 200
"""Pieces of the target's progress, each with one noise scale."""

RAMP_START, RAMP_SHARE = 1 / 16, 0.04
"""A fixed ramp: from a sixteenth of the batch over the first 4 % of the examples.

Source: Brown et al. 2020, arXiv:2005.14165: 12 of 300 billion tokens."""

LATE_SWITCH = 0.75
"""A late switch keeps the small batch for this share of the progress."""

START = 1 / 4
"""Share of the best batch at which policies start that only double."""

SEESAW_HALVINGS = (0.5, 0.667, 0.77, 0.839)
"""Shares of a cosine decay at which its learning rate has halved once, twice, …"""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a schedule of the batch takes to the target.

    Attributes:
        name: Of the policy.
        first_batch: At the start, in examples.
        last_batch: At the end.
        steps: Optimizer steps.
        examples: Examples.
        hours: Wall time; None without a step time.
        usd: Money; None without a price.
        relative_cost: r S + E, divided by that of the best constant batch.
        text: What it does.
    """

    name: str
    first_batch: float
    last_batch: float
    steps: float
    examples: float
    hours: float | None
    usd: float | None
    relative_cost: float
    text: str


def profile_of(to_target: TradeOff, growth: float) -> list[Stretch]:
    """φ ∝ s^q over the target's progress, with the S_min and E_min of the trade-off.

    Args:
        to_target: Steps and examples at constant batches.
        growth: q, above -1.

    Raises:
        ValueError: Unless q exceeds -1.
    """
    if not -1 < growth < math.inf:
        raise ValueError(f"growth must exceed -1, got {growth:g}: the noise scale cannot fall faster than 1 / s")
    ends = [(place / NUM_PIECES) ** (1 + growth) for place in range(NUM_PIECES + 1)]
    width = to_target.min_steps / NUM_PIECES
    # the mean of s^q over a piece is exact, so the pieces add up to E_min
    return [Stretch(width, to_target.critical_batch * (end - start) * NUM_PIECES) for start, end in pairwise(ends)]


def policies(profile: Sequence[Stretch], *, examples_per_step: float, pace: Pace | None) -> list[Policy]:
    """All policies, the cheapest first.

    Args:
        profile: The noise scale up to the target, piece by piece.
        examples_per_step: r.
        pace: Time and price of a step; None for steps and examples alone.

    Raises:
        ValueError: If the profile is empty or without noise.
    """
    critical = trade_off_of(profile, target="the end of the profile").critical_batch
    best = best_batch(critical_batch=critical, examples_per_step=examples_per_step)
    constant = outcome(profile, [best] * len(profile))
    ways = {
        "constant": ([best] * len(profile), "The best constant batch, √(r B_crit)."),
        "follow": (
            [scheduled_batch(noise_scale=part.noise_scale, examples_per_step=examples_per_step) for part in profile],
            "√(r φ) at every moment.",
        ),
        "follow_in_stages": (
            _in_stages(profile, examples_per_step),
            "√(r φ), changed only where it is off by more than 1.4 ×.",
        ),
        "doublings": (
            _doublings(profile, best),
            "From a quarter of the best batch, doubled where φ exceeds twice the batch (Merrill et al. 2025).",
        ),
        "seesaw": (
            _seesaw(best, len(profile)),
            "From a quarter of the best batch, doubled where a cosine decay halves the learning rate (Seesaw).",
        ),
        "fixed_ramp": (
            _fixed_ramp(profile, best, constant.examples),
            "From a sixteenth of the best batch to it over the first 4 % of the examples (Brown et al. 2020).",
        ),
        "late_switch": (
            [best / 2 if place < LATE_SWITCH * len(profile) else 2 * best for place in range(len(profile))],
            "Half the best batch for three quarters of the progress, then twice it.",
        ),
    }
    found = [
        _policy(name, profile, batches, text, pace=pace, rate=examples_per_step, constant=constant)
        for name, (batches, text) in ways.items()
    ]
    return sorted(found, key=lambda policy: policy.relative_cost)


def _policy(
    name: str,
    profile: Sequence[Stretch],
    batches: Sequence[float],
    text: str,
    *,
    pace: Pace | None,
    rate: float,
    constant: Outcome,
) -> Policy:
    taken = outcome(profile, batches)
    hours, usd = (None, None) if pace is None else _hours_and_usd(profile, batches, pace)
    return Policy(
        name=name,
        first_batch=batches[0],
        last_batch=batches[-1],
        steps=taken.steps,
        examples=taken.examples,
        hours=hours,
        usd=usd,
        relative_cost=taken.cost(rate) / constant.cost(rate),
        text=text,
    )


def _hours_and_usd(profile: Sequence[Stretch], batches: Sequence[float], pace: Pace) -> tuple[float, float | None]:
    hours = usd = 0.0
    is_priced = True
    for part, batch in zip(profile, batches, strict=True):
        steps = part.ideal_steps * (1 + part.noise_scale / batch)
        price = pace.usd_per_step(batch)
        hours += steps * pace.seconds(batch) / SECONDS_PER_HOUR
        usd += steps * (price or 0.0)
        is_priced = is_priced and price is not None
    return hours, usd if is_priced else None


def _in_stages(profile: Sequence[Stretch], rate: float) -> list[float]:
    """One batch for each piece, held until it is off by more than the hysteresis; it never falls."""
    held: list[float] = []
    for part in profile:
        wanted = scheduled_batch(noise_scale=part.noise_scale, examples_per_step=rate)
        is_off = not held or wanted / held[-1] > HYSTERESIS
        held.append(wanted if is_off else held[-1])
    return held


def _doublings(profile: Sequence[Stretch], best: float) -> list[float]:
    batch, found = best * START, []
    for part in profile:
        while part.noise_scale > 0 and should_double(batch=batch, local_critical_batch=part.noise_scale):
            batch *= 2
        found.append(batch)
    return found


def _seesaw(best: float, num_pieces: int) -> list[float]:
    shares = [(place + 0.5) / num_pieces for place in range(num_pieces)]
    return [best * START * 2.0 ** sum(share >= cut for cut in SEESAW_HALVINGS) for share in shares]


def _fixed_ramp(profile: Sequence[Stretch], best: float, examples: float) -> list[float]:
    ramp, used, found = LinearRamp(best * RAMP_START, best, RAMP_SHARE * examples), 0.0, []
    for part in profile:
        found.append(ramp.batch(used))
        used += part.ideal_steps * (found[-1] + part.noise_scale)
    return found
