"""Schedules of the batch side by side: what each takes to the same target, were the noise scale to go as forecast.

Every policy is run on one profile φ(s) over progress s, by 1 + φ / B steps and B + φ examples for each ideal step
(McCandlish et al. 2018, arXiv:1812.06162, eq. D.1), so only the batches differ: no policy is charged for a
learning rate that does not suit it, and none is credited for one that does. Intervals hold the batches as they are
planned now, were B_crit what its interval says; the plan at the present batch stays the target.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from noisescale_core.advice.limits.pace import Pace
from noisescale_core.advice.limits.predictions import Banded, banded
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.intervals import Carried, Estimate, LogError
from noisescale_core.theory.schedule import HYSTERESIS, Stretch, outcome, scheduled_batch, trade_off_of
from noisescale_core.theory.trade_off import TradeOff, best_batch
from noisescale_server.analysis.planner.ramps import LinearRamp, should_double
from noisescale_server.services.planner.asked import EXACT
from noisescale_server.services.planner.rows import with_plan_error

# What policies cost in training on tasks that no design has seen: published with `docs/policies.md`.
#
# The numbers are those of `benchmarks/results/policies.csv` (held-out tasks, constant learning rate, r = B_crit); a
# test holds them against the file.


@dataclass(frozen=True, slots=True)
class MeasuredRegret:
    """Policy regret over runs: cost to the target over that of the best constant run with tuned rate, less one.

    Attributes:
        policy: As the benchmark calls it.
        median: Over all starts, whose batch is off by up to 8 × and whose rate by up to 4 ×, as a share.
        p90: The worst tenth of these begins here; 7 is a run that missed its target.
        median_right: Over runs that started right.
        p90_right: The same.
        num_runs: Runs behind median and p90.
        num_runs_right: Runs behind the other two.
        source: Where it stands.
    """

    policy: str
    median: float
    p90: float
    median_right: float
    p90_right: float
    num_runs: int = 252
    num_runs_right: int = 21
    source: str = "docs/policies.md, held-out tasks, constant rate"


MEASURED = {
    "constant": MeasuredRegret("keep", 2.26449, 7.0, 0.0502151, 0.502243),
    "follow": MeasuredRegret("B = sqrt(r phi)", 1.08788, 7.0, 0.094451, 1.05622),
    "doublings": MeasuredRegret("doublings (Merrill)", 3.02051, 7.0, 0.899038, 2.04978),
    "noisescale": MeasuredRegret("ours", 0.633649, 1.88526, 0.395092, 1.0422),
}
"""By the name of the policy. Left out, as other versions of them were measured: fixed ramps, a late switch, Seesaw at
a constant rate, and √(r φ) in stages without the guard."""


Floats = NDArray[np.float64]
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
        first_batch: At the start, in whole examples; None where it depends on what the run shows.
        last_batch: At the end.
        steps: Optimizer steps.
        examples: Examples.
        hours: Wall time; None without a step time that tells it.
        usd: Money; None without that or a price.
        relative_cost: r S + E, divided by that of the best constant batch.
        measured_regret: In training on held-out tasks; None where it was not measured.
        text: What it does.
    """

    name: str
    first_batch: float | None
    last_batch: float | None
    steps: Banded | None
    examples: Banded | None
    hours: Banded | None
    usd: Banded | None
    relative_cost: float | None
    measured_regret: MeasuredRegret | None
    text: str


PRODUCT = Policy(
    name="noisescale",
    first_batch=None,
    last_batch=None,
    steps=None,
    examples=None,
    hours=None,
    usd=None,
    relative_cost=None,
    measured_regret=MEASURED["noisescale"],
    text="noisescale.follow: the batch of least expected cost, the rate by the path, raises undone where they fail.",
)
"""It decides by what the run shows, so there is nothing to predict of it beforehand."""


@dataclass(frozen=True, slots=True)
class Terrain:
    """What all policies are run on.

    Attributes:
        profile: The noise scale up to the target, piece by piece.
        critical_batch: B_crit with its errors; the profile stands at its value.
        present_batch: At which the plan's steps are known, whatever B_crit is; None: S_min is.
        pace: Time and price of a step; None for steps and examples alone.
        plan_error: Log error of the plan's steps.
    """

    profile: Sequence[Stretch]
    critical_batch: Estimate
    present_batch: float | None
    pace: Pace | None
    plan_error: LogError = EXACT


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


def policies(terrain: Terrain, *, examples_per_step: float) -> list[Policy]:
    """All policies, the cheapest first; the product's own, which cannot be predicted, last.

    Args:
        terrain: Profile, B_crit, and what a step takes.
        examples_per_step: r.

    Raises:
        ValueError: If the profile is empty or without noise.
    """
    profile = terrain.profile
    critical = trade_off_of(profile, target="the end of the profile").critical_batch
    best = _whole(best_batch(critical_batch=critical, examples_per_step=examples_per_step))
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
    ways = {name: ([_whole(batch) for batch in batches], text) for name, (batches, text) in ways.items()}
    pieces = _pieces(profile)
    known = {name: outcome(profile, batches).cost(examples_per_step) for name, (batches, _) in ways.items()}
    found = [
        _policy(name, terrain, pieces, *ways[name], relative_cost=cost / constant.cost(examples_per_step))
        for name, cost in sorted(known.items(), key=lambda one: one[1])
    ]
    return [*found, PRODUCT]


def _whole(batch: float) -> float:
    """The nearest batch that can be run: of whole examples, one at least."""
    return max(1.0, float(round(batch)))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The profile piece by piece: ideal steps s, and s φ."""

    ideal: Floats
    noisy: Floats


def _pieces(profile: Sequence[Stretch]) -> _Pieces:
    ideal = np.array([part.ideal_steps for part in profile])
    return _Pieces(ideal, ideal * np.array([part.noise_scale for part in profile]))


def _policy(
    name: str, terrain: Terrain, pieces: _Pieces, batches: Sequence[float], text: str, *, relative_cost: float
) -> Policy:
    pace = terrain.pace
    # most policies hold few batches, and each is priced once
    different, places = np.unique(batches, return_inverse=True)
    prices = [None if pace is None else pace.usd_per_step(float(batch)) for batch in different]
    times = [None if pace is None else pace.seconds(float(batch)) for batch in different]
    hours = [seconds / SECONDS_PER_HOUR for seconds in times if seconds is not None]

    def taken(weights: Sequence[float] | Floats) -> Banded:
        return banded(_weighted_steps(terrain, pieces, different[places], np.asarray(weights)[places]))

    return Policy(
        name=name,
        first_batch=batches[0],
        last_batch=batches[-1],
        steps=taken([1.0] * len(different)),
        examples=taken(different),
        hours=taken(hours) if len(hours) == len(different) else None,
        usd=taken([price for price in prices if price is not None]) if all(prices) else None,
        relative_cost=relative_cost,
        measured_regret=MEASURED.get(name),
        text=text,
    )


def _weighted_steps(terrain: Terrain, pieces: _Pieces, batches: Floats, weights: Floats) -> Carried:
    """The sum of w over a policy's steps, carried through B_crit's errors: w is 1, a batch, hours or USD of a step.

    Were φ everywhere f times the profile's, progress s would take (1 + f φ / B) steps, and the plan at the present
    batch, whose steps are known, would be s (A + M) / (A + f M) long: a fraction linear in f, so it is monotone.
    """
    ideal, noisy = float(pieces.ideal @ weights), float(pieces.noisy @ (weights / batches))
    plan_ideal = float(pieces.ideal.sum())
    plan_noisy = 0.0 if terrain.present_batch is None else float(pieces.noisy.sum()) / terrain.present_batch
    value, whole = terrain.critical_batch.value, plan_ideal + plan_noisy

    def at(critical: float) -> float:
        factor = critical / value
        if factor == math.inf:
            return noisy / plan_noisy * whole if plan_noisy else math.inf
        return (ideal + factor * noisy) * whole / (plan_ideal + factor * plan_noisy)

    return with_plan_error(terrain.critical_batch.through(at), terrain.plan_error)


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
