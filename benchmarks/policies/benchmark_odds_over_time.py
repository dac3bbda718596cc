"""What a run is told while it goes on, looked at after each look. Writes results/odds_over_time.csv.

Are the odds honest when a decision first shows, is one ever reversed, is a right batch kept? Simulated streams of known
B_crit: a noise scale that stands still, one that grows as κ's course says, and one whose noise has heavy tails.
`--smoke` draws a few and writes nothing.
"""

import math
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import size
from noisescale_core.advice.decision import KEEP_REGRET
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import ODDS_LOG_SD, UNCALIBRATED
from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.advice.parts.parts import Decision, RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import decide
from noisescale_core.estimators.looks import Looks, look_of
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_core.theory.trade_off import regret_at_price

KINDS = ("stands still", "grows", "heavy tails")
STREAMS = size(400, 3)
"""Of each kind."""

STEPS = size(2_000, 200)
GROUPS, DIRECTIONS = 8, 50
SPREAD_OF_STEPS = 1.0
"""Standard deviation of the logarithm of a step's noise where tails are heavy."""

PRICES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
SURE = ("increase", "decrease", "keep")
OPPOSITE = {"increase": "decrease", "decrease": "increase"}


@dataclass(frozen=True, slots=True)
class Told:
    """What one stream was told.

    Attributes:
        first: The first decision of `SURE`; None where there was none.
        is_first_right: Whether it was.
        is_reversed: It was told to raise after it had been told to lower, or the other way round.
        last: The last decision.
        is_batch_right: The batch costs at most an eighth more than the best one.
    """

    first: Decision | None
    is_first_right: bool
    is_reversed: bool
    last: Decision
    is_batch_right: bool


def stream(kind: str, seed: int) -> Told:
    """Draw a run, and look at it after each look."""
    source = random.Random(f"{kind} {seed}")
    critical = math.exp(source.uniform(math.log(30), math.log(30_000)))
    batch = critical * 2 ** source.uniform(-6, 6)
    price = critical * source.choice(PRICES)
    unusual = source.gauss(0, ODDS_LOG_SD)
    looks, told, number = Looks(), list[Decision](), 0
    for step in range(STEPS):
        progress = (step + 1) / STEPS
        log_kappa = UNCALIBRATED.log_mean_at(progress if kind == "grows" else None) + unusual
        noise_scale = critical * math.exp(-log_kappa)
        heavy = math.exp(source.gauss(0, SPREAD_OF_STEPS)) if kind == "heavy tails" else 1.0
        looks.add(step, _terms(source, noise_scale * heavy, batch), batch, None)
        if look_of(step + 1) != number:
            number = look_of(step + 1)
            run = RunSoFar(
                noise_scale=NOTHING_MEASURED,
                batch_size=batch,
                steps_done=step + 1,
                planned_steps=STEPS if kind == "grows" else None,
                known=known_noise_scale(looks.so_far()),
            )
            told.append(decide(run, Measured(), Question(examples_per_step=price)))
    return _told(told, batch, critical, price)


def _terms(source: random.Random, noise_scale: float, batch: float) -> Terms:
    """The estimates of a step of equal directions, |G|² being 1."""
    variance = noise_scale / batch / DIRECTIONS
    big = (1 + source.gauss(0, math.sqrt(variance))) ** 2 + variance * source.gammavariate((DIRECTIONS - 1) / 2, 2)
    between = GROUPS * variance * source.gammavariate((GROUPS - 1) * DIRECTIONS / 2, 2) / (GROUPS - 1)
    trace_cov = batch / GROUPS * between
    return Terms(trace_cov, big - trace_cov / batch)


def _told(told: Sequence[Decision], batch: float, critical: float, price: float) -> Told:
    def costs(size_of_batch: float) -> float:
        return regret_at_price(batch=size_of_batch, critical_batch=critical, examples_per_step=price)

    def is_right(one: Decision) -> bool:
        if one.decision == "keep" or one.batch_size is None:
            return costs(batch) <= KEEP_REGRET
        return costs(one.batch_size) < costs(batch)

    first = next((one for one in told if one.decision in SURE), None)
    words = [one.decision for one in told if one.decision in OPPOSITE]
    return Told(
        first=first,
        is_first_right=first is not None and is_right(first),
        is_reversed=any(OPPOSITE[word] in words for word in words),
        last=told[-1],
        is_batch_right=costs(batch) <= KEEP_REGRET,
    )


def figures() -> Iterator[Figure]:
    """All kinds by themselves."""
    for kind in KINDS:
        found = [stream(kind, seed) for seed in range(STREAMS)]
        changed = [one for one in found if one.first is not None and one.first.decision != "keep"]
        right = [one for one in found if one.is_batch_right]
        name = f"noise scale {kind}"
        yield Figure(f"{name}: streams", len(found), "runs")
        yield Figure(f"{name}: a decision shows", 100 * _share(one.first is not None for one in found), "%")
        probability = [one.first.probability or 0.0 for one in changed if one.first is not None]
        yield Figure(f"{name}: first change, odds as said", 100 * statistics.fmean(probability), "%")
        yield Figure(f"{name}: first change, came true", 100 * _share(one.is_first_right for one in changed), "%")
        yield Figure(f"{name}: reversed", 100 * _share(one.is_reversed for one in found), "%", "at most 5")
        kept = _share(one.last.decision == "keep" for one in right)
        yield Figure(f"{name}: keep, of {len(right)} runs that are right", 100 * kept, "%", "at least 60")


def _share(values: Iterator[bool]) -> float:
    found = list(values)
    return statistics.fmean(found) if found else math.nan


if __name__ == "__main__":
    write("odds_over_time", list(figures()), command="python benchmarks/policies/benchmark_odds_over_time.py")
