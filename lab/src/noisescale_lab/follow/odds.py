"""What a run's measurements say of its batch, with odds: as the product's advice says it (`docs/deciding.md`)."""

from dataclasses import dataclass

from noisescale_core.advice.decision import LEAST_FACTOR, LEAST_SAVING
from noisescale_core.advice.evidence.critical_belief import critical_of
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.evidence.usual import near
from noisescale_core.advice.limited import round_batch
from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.theory.expected_cost import least_expected_cost, stake
from noisescale_lab.follow.actions import RunState

LEAST_PROGRESS = 1e-3
"""κ's course is flat long before."""


@dataclass(frozen=True, slots=True)
class BatchOdds:
    """A batch against the present one.

    Attributes:
        batch: In examples; the present one where it is the cheapest.
        probability: That it is cheaper.
        saving: Expected saving, as a share of the present cost.
        critical_batch: Median of B_crit, in examples.
        noise_scale: Median of φ, in examples.
        is_worth_it: A change of this size with this saving is worth the trouble.
    """

    batch: int
    probability: float
    saving: float
    critical_batch: float
    noise_scale: float
    is_worth_it: bool


def batch_odds(run: RunState, *, smallest: float, largest: float) -> BatchOdds | None:
    """The batch of least expected cost; None before 8 measured steps.

    Args:
        run: As it stands.
        smallest: Batch that may be asked for, in examples.
        largest: The same.
    """
    known = known_noise_scale(run.looks)
    if known is None:
        return None
    done = min(1.0, max(run.progress, LEAST_PROGRESS)) if run.has_plan else None
    critical = critical_of(
        known.belief,
        log_mean=UNCALIBRATED.log_mean_at(
            None if done is None else done * known.share, relative_rate=known.relative_rate
        ),
        odds_log_sd=UNCALIBRATED.odds_log_sd,
        shown_log_sd=UNCALIBRATED.odds_log_sd,
        usual=(near(run.batch),),
    )
    batch = round_batch(min(largest, max(smallest, least_expected_cost(critical.belief, run.price))))
    found = stake(critical.belief, run.price, now=run.batch, then=batch)
    return BatchOdds(
        batch=batch,
        probability=found.probability,
        saving=found.saving,
        critical_batch=critical.estimate.value,
        noise_scale=known.belief.quantile(0.5),
        is_worth_it=found.saving >= LEAST_SAVING and max(batch / run.batch, run.batch / batch) >= LEAST_FACTOR,
    )
