"""How good recommendations half-way are: shares of runs that see, decide and are right, tasks drawn anew."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from noisescale_core.advice.evidence.kappa import UNCALIBRATED, Kappa
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_lab.reproduce.advice.glimpses import Glimpse
from noisescale_lab.reproduce.advice.prospects import Prospect, kappa_elsewhere, known, prospect
from noisescale_lab.reproduce.advice.sweep import Reference

BOOTSTRAPS = 2000

FEWEST_TASKS = 3
"""A spread over tasks needs two others."""

NOISE: dict[str, Callable[[Glimpse], NoiseScaleEstimate]] = {
    "measured, latest window": lambda glimpse: glimpse.latest,
    "measured, last half of the run": lambda glimpse: glimpse.last_half,
    "exact, now": lambda glimpse: known(glimpse.exact, glimpse.latest),
    "exact, average so far": lambda glimpse: known(glimpse.exact_average, glimpse.latest),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; shares with the 95 % interval of drawing tasks anew.

    Attributes:
        rate: "constant" or "decaying".
        share: Of the run; "all" is at every share together.
        noise: What is known of the noise scale.
        kappa: What is known of κ.
        runs: Looks at runs.
        shown: Share with a noise scale, resolved or tentative.
        resolved: Share where it was resolved.
        holds: Share of the shown whose interval for B_crit holds the sweep's.
        holds_low: Lower end.
        holds_high: Upper end.
        decided: Share of all with a decision.
        decided_low: Lower end.
        decided_high: Upper end.
        right: Share of the decisions that point the right way.
        log_error: Root mean square of log(estimated / true B_crit).
        recommended_median: Regret in % of the recommended batch where one is shown.
        recommended_p90: Nine in ten are below.
        followed_median: Regret in % where only decisions are followed.
        followed_p90: Nine in ten are below.
        kept_median: Regret in % of keeping the batch.
        kept_p90: Nine in ten are below.
    """

    rate: str
    share: str
    noise: str
    kappa: str
    runs: int
    shown: float
    resolved: float
    holds: float
    holds_low: float
    holds_high: float
    decided: float
    decided_low: float
    decided_high: float
    right: float
    log_error: float
    recommended_median: float
    recommended_p90: float
    followed_median: float
    followed_p90: float
    kept_median: float
    kept_p90: float


def share_true(of_tasks: Sequence[Sequence[bool]]) -> tuple[float, float, float]:
    """The share that is true, and its interval; not a number without any."""
    counts = np.array([(sum(values), len(values)) for values in of_tasks])
    if not counts.size or not counts[:, 1].any():
        return math.nan, math.nan, math.nan
    drawn = counts[np.random.default_rng(0).integers(len(counts), size=(BOOTSTRAPS, len(counts)))].sum(1)
    low, high = np.quantile((drawn[:, 0] / np.maximum(drawn[:, 1], 1))[drawn[:, 1] > 0], (0.025, 0.975))
    return float(counts[:, 0].sum() / counts[:, 1].sum()), float(low), float(high)


def quantiles(values: Sequence[float]) -> tuple[float, float]:
    """Median and ninth decile."""
    return (float(np.median(values)), float(np.quantile(values, 0.9))) if values else (math.nan, math.nan)


def row(labels: tuple[str, str, str, str], by_task: Sequence[Sequence[Prospect]]) -> Row:
    """One line from what was said of all tasks' runs."""
    everything = [one for of_task in by_task for one in of_task]
    errors = [one.log_error for one in everything if one.log_error is not None]
    return Row(
        *labels,
        len(everything),
        float(np.mean([one.is_shown for one in everything])),
        float(np.mean([one.is_resolved for one in everything])),
        *share_true([[one.holds for one in of_task if one.holds is not None] for of_task in by_task]),
        *share_true([[one.is_right is not None for one in of_task] for of_task in by_task]),
        share_true([[one.is_right for one in everything if one.is_right is not None]])[0],
        math.sqrt(float(np.mean(np.square(errors)))) if errors else math.nan,
        *quantiles([one.recommended for one in everything if one.recommended is not None]),
        *quantiles([one.followed for one in everything]),
        *quantiles([one.kept for one in everything]),
    )


def log_kappas(
    looks: Mapping[str, Sequence[Glimpse]],
    references: Mapping[str, Reference],
    noise: Callable[[Glimpse], NoiseScaleEstimate],
) -> dict[str, list[float]]:
    """Log of B_crit over the noise scale of these runs, by task."""
    found = {}
    for name, some in looks.items():
        values = [noise(glimpse).value for glimpse in some]
        found[name] = [math.log(references[name].critical_batch / value) for value in values if value]
    return found


def kappas(
    all_looks: Mapping[str, Sequence[Glimpse]],
    references: Mapping[str, Reference],
    share: float,
    noise: Callable[[Glimpse], NoiseScaleEstimate],
) -> dict[str, dict[str, Kappa]]:
    """What is known of κ, by where it comes from and by task; from others only where each task has two others."""
    average = NOISE["exact, average so far"]
    tuned = {
        name: [one for one in looks if one.share == 1.0 and one.start.rate_factor == 1]
        for name, looks in all_looks.items()
    }
    alike = {name: [one for one in looks if one.share == share] for name, looks in all_looks.items()}
    of_sweeps = log_kappas(tuned, references, average)
    of_replays = log_kappas(alike, references, noise)
    found = {"published spread": dict.fromkeys(all_looks, UNCALIBRATED)}
    if sum(bool(values) for values in of_sweeps.values()) >= FEWEST_TASKS:
        found["sweeps of other tasks"] = {n: kappa_elsewhere(n, of_sweeps, "Sweeps of other tasks.") for n in all_looks}
    if sum(bool(values) for values in of_replays.values()) > FEWEST_TASKS:
        found["runs like this one of other tasks"] = {
            n: kappa_elsewhere(n, of_replays, "Runs of other tasks at the same share.") for n in all_looks
        }
    return found


def rows(
    rate: str,
    all_looks: Mapping[str, Sequence[Glimpse]],
    references: Mapping[str, Reference],
    shares: Sequence[float],
    noise_scales: Mapping[str, Callable[[Glimpse], NoiseScaleEstimate]] = NOISE,
) -> list[Row]:
    """All lines of a schedule.

    Args:
        rate: "constant" or "decaying".
        all_looks: By task.
        references: By task.
        shares: Of the runs, each of which all runs were looked at.
        noise_scales: What is known of the noise scale, by name.
    """
    found, of_all_shares = [], dict[tuple[str, str], dict[str, list[Prospect]]]()
    for share in shares:
        for noise, read_noise in noise_scales.items():
            for said, by_task in kappas(all_looks, references, share, read_noise).items():
                said_of = {
                    name: [
                        prospect(look, read_noise(look), references[name], by_task[name])
                        for look in looks
                        if look.share == share
                    ]
                    for name, looks in all_looks.items()
                }
                found.append(row((rate, f"{share:g}", noise, said), list(said_of.values())))
                together = of_all_shares.setdefault((noise, said), {name: [] for name in all_looks})
                for name, prospects in said_of.items():
                    together[name] += prospects
    return found + [row((rate, "all", *labels), list(by_task.values())) for labels, by_task in of_all_shares.items()]
