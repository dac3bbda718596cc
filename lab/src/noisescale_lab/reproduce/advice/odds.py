"""Do the odds of an advice come true? Runs that nobody advises, judged at shares of their plan against their sweep.

The advice is the product's own (`noisescale_core.advice`), at prices from a sixteenth of the sweep's B_crit to 16 times
it. What it says of a run is right where the batch is cheaper than the present one by the sweep's B_crit, and of `keep`
where the present batch costs at most an eighth more than the best one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from noisescale_core.advice.evidence.critical_belief import Critical, critical_of, near
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.hindsight import Hindsight, hindsight
from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale, known_noise_scale
from noisescale_core.theory.learning_rate import averages_gradients
from noisescale_lab.reproduce.advice.glimpses import GlimpsedRun, planned_steps, watched
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
        holds: The sweep's B_crit lies in the interval that is shown.
        said: What was said, and what would have come of it.
    """

    task: str
    decays: bool
    progress: float
    kappa: str
    price: float
    holds: bool
    said: Hindsight


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
            phi = known_after(run, batch, round(share * planned))
            if phi is not None:
                found += _at_prices(run, batch, share, phi, reference, task)
    return found


def known_after(run: GlimpsedRun, batch: int, steps: int) -> KnownNoiseScale | None:
    """What the product knows of the noise scale after so many steps; None where the run took fewer.

    Args:
        run: Whose terms and rates it is.
        batch: In examples.
        steps: Optimizer steps.
    """
    return None if steps > len(run.terms) else known_noise_scale(run.looks(batch, steps).so_far())


def _critical(kappa: str, phi: KnownNoiseScale, share: float, batch: int, task: Task) -> Critical:
    if kappa == PUBLISHED:
        sd = UNCALIBRATED.log_sd
        return critical_of(phi.belief, log_mean=0.0, odds_log_sd=sd, shown_log_sd=sd, usual=(near(batch),))
    return critical_of(
        phi.belief,
        log_mean=UNCALIBRATED.log_mean_at(
            share * phi.share,
            relative_rate=phi.relative_rate,
            averages_gradients=averages_gradients(task.optimizer.class_name, task.optimizer.momentum),
        ),
        odds_log_sd=UNCALIBRATED.odds_log_sd,
        shown_log_sd=UNCALIBRATED.log_sd,
        usual=(near(batch),),
    )


def _at_prices(
    run: GlimpsedRun, batch: int, share: float, phi: KnownNoiseScale, reference: Reference, task: Task
) -> Iterator[Judged]:
    truth = reference.critical_batch
    for kappa in KAPPAS:
        critical = _critical(kappa, phi, share, batch, task)
        interval = critical.estimate.interval
        for ratio in PRICES:
            said = hindsight(critical, batch_size=batch, critical_batch=truth, price_ratio=ratio)
            assert said is not None, "no batch of a sweep is beyond all plans"
            yield Judged(
                task=reference.name,
                decays=run.start.decays,
                progress=share,
                kappa=kappa,
                price=ratio,
                holds=interval.low <= truth <= interval.high,
                said=said,
            )
