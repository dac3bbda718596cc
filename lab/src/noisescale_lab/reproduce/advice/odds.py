"""Do the odds of an advice come true? Runs that nobody advises, judged at shares of their plan against their sweep.

The advice is the product's own (`noisescale_core.advice`), at prices from a sixteenth of the sweep's B_crit to 16 times
it. What it says of a run is right where the batch is cheaper than the present one by the sweep's B_crit, and of `keep`
where the present batch costs at most an eighth more than the best one.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from noisescale_core.advice.critical_belief import Critical, critical_of
from noisescale_core.advice.decision import KEEP_REGRET, word_of
from noisescale_core.advice.kappa import UNCALIBRATED
from noisescale_core.advice.limited import round_batch
from noisescale_core.advice.parts import DecisionWord
from noisescale_core.advice.pricing import price
from noisescale_core.estimators.belief import Belief, belief
from noisescale_core.estimators.looks import Looks
from noisescale_core.theory.expected_cost import Stake, stake
from noisescale_core.theory.prices import worth_examples
from noisescale_core.theory.trade_off import regret_at_price
from noisescale_lab.reproduce.advice.glimpses import Watched, planned_steps, watched
from noisescale_lab.reproduce.advice.run import Start
from noisescale_lab.reproduce.advice.sweep import Reference
from noisescale_lab.reproduce.task import Task

PRICES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
"""What a step is worth, in critical batches."""

PUBLISHED, BY_PROGRESS = "published spread", "by progress"
KAPPAS = (PUBLISHED, BY_PROGRESS)
"""κ = 1 with the spread of Table 1, and the product's own course and spread."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of a run at one price, and what would have come of it.

    Attributes:
        task: Its name.
        decays: Whether the learning rate decays over the plan.
        progress: Share of the plan that is done.
        kappa: Which κ the odds take, of `KAPPAS`.
        price: In critical batches.
        word: What was said.
        probability: That the batch is cheaper than the present one, as it was said.
        is_cheaper: Whether it is.
        is_right: Whether the word is; None where it says neither a change nor to keep.
        holds: The sweep's B_crit lies in the interval that is shown.
        regret: Extra cost of the recommended batch over the best one, as a share.
        kept: The same of the present batch.
        control: The same of a batch as large as the price, which knows nothing of the run.
    """

    task: str
    decays: bool
    progress: float
    kappa: str
    price: float
    word: DecisionWord
    probability: float
    is_cheaper: bool
    is_right: bool | None
    holds: bool
    regret: float
    kept: float
    control: float


def judged(task: Task, reference: Reference, starts: Iterable[Start], shares: Sequence[float]) -> list[Judged]:
    """Every run at every share of its plan that it got to, at every price and by both κ.

    Args:
        task: What is trained.
        reference: Its sweep.
        starts: Of the runs.
        shares: Of the plan.
    """
    found = list[Judged]()
    for run, batch in watched(task, reference, starts):
        planned = planned_steps(reference, batch)
        for share in shares:
            phi = _belief(run, batch, round(share * planned))
            if phi is not None:
                found += _at_prices(run, batch, share, phi, reference)
    return found


def _belief(run: Watched, batch: int, steps: int) -> Belief | None:
    """What the product knows of the noise scale after so many steps; None where the run took fewer."""
    if steps > len(run.terms):
        return None
    looks = Looks()
    for step, terms in enumerate(run.terms[:steps]):
        looks.add(step, terms, batch, None)
    return belief(looks.so_far())


def _critical(kappa: str, phi: Belief, share: float, batch: int) -> Critical:
    if kappa == PUBLISHED:
        sd = UNCALIBRATED.log_sd
        return critical_of(phi, log_mean=0.0, odds_log_sd=sd, shown_log_sd=sd, batch_size=batch)
    return critical_of(
        phi,
        log_mean=UNCALIBRATED.log_mean_at(share),
        odds_log_sd=UNCALIBRATED.odds_log_sd,
        shown_log_sd=UNCALIBRATED.log_sd,
        batch_size=batch,
    )


def _at_prices(run: Watched, batch: int, share: float, phi: Belief, reference: Reference) -> Iterator[Judged]:
    truth = reference.critical_batch
    for kappa in KAPPAS:
        critical = _critical(kappa, phi, share, batch)
        interval = critical.estimate.interval
        for ratio in PRICES:
            rate = worth_examples(ratio * truth)
            priced = price(critical, rate)
            assert priced is not None, "no batch of a sweep is beyond all plans"
            to_batch = round_batch(priced.best.value)
            found = stake(priced.belief, rate, now=batch, then=to_batch)
            word = word_of(found, now=batch, then=to_batch)
            costs = [
                regret_at_price(batch=one, critical_batch=truth, examples_per_step=ratio * truth)
                for one in (to_batch, batch, ratio * truth)
            ]
            yield Judged(
                task=reference.name,
                decays=run.start.decays,
                progress=share,
                kappa=kappa,
                price=ratio,
                word=word,
                probability=_of_side(found, now=batch, then=to_batch),
                is_cheaper=costs[0] < costs[1],
                is_right=_is_right(word, is_cheaper=costs[0] < costs[1], kept=costs[1]),
                holds=interval.low <= truth <= interval.high,
                regret=costs[0],
                kept=costs[1],
                control=costs[2],
            )


def _of_side(found: Stake, *, now: float, then: float) -> float:
    return found.probability if then != now else math.nan


def _is_right(word: DecisionWord, *, is_cheaper: bool, kept: float) -> bool | None:
    match word:
        case "keep":
            return kept <= KEEP_REGRET
        case "keep_for_now" | "insufficient_evidence":
            return None
    return is_cheaper
