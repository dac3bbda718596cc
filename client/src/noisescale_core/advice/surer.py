"""What would make an answer surer, and what each costs in steps, hours and USD."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from noisescale_core.advice.evidence.critical_belief import LARGEST, SMALLEST
from noisescale_core.advice.evidence.evidence import Evidence, Measured, begun
from noisescale_core.advice.limits.bounds import trade_off_of
from noisescale_core.advice.limits.pace import Pace
from noisescale_core.advice.parts.parts import RunSetting, RunSoFar
from noisescale_core.advice.words import of_a_run as wording
from noisescale_core.estimators.uncertainty import Reason, State
from noisescale_core.theory.cost import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from noisescale_core.advice.limits.pricing import Priced


BRANCH_ARMS = (0.5, 1.0, 2.0)
"""Batches of a branch, in present batches, at equal examples."""

BRANCH_SHARE = 0.05
BRANCH_MIN_STEPS = 8
"""Each arm takes this share of the examples so far, and at least so many steps of the largest batch."""

SWEEP_BATCHES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Batches of a small sweep, in critical batches as they are estimated now."""


@dataclass(frozen=True, slots=True)
class Surer:
    """One thing to do.

    Attributes:
        kind: What.
        is_extra: It is paid besides the run; steps that the plan takes anyway are not.
        steps: Optimizer steps that it takes; None where it takes none or nobody can say.
        examples: Examples that it takes.
        hours: Its time; None without step times.
        usd: Its price; None without devices or a price.
        text: What to do, with its cost.
    """

    kind: Literal["more_steps", "more_micro_batches", "branch", "sweep"]
    is_extra: bool
    steps: float | None
    examples: float | None
    hours: float | None
    usd: float | None
    text: str


def surer(run: RunSetting, evidence: Evidence, priced: "Priced | None", pace: Pace | None) -> tuple[Surer, ...]:
    """What would make the answer surer, the cheapest first.

    Args:
        run: As it stands.
        evidence: What B_crit is known from.
        priced: B_crit; None without a noise scale.
        pace: Time and price of a step.
    """
    sweep = None if priced is None or evidence.num_measurements else _sweep(run, priced, pace)
    if not isinstance(evidence, Measured):
        return () if sweep is None else (sweep,)
    so_far = begun(run)
    scale, batch = so_far.noise_scale, so_far.batch_size
    if batch is None or not SMALLEST < batch < LARGEST or scale.reason is Reason.NO_ESTIMATES:
        return ()
    if scale.state is not State.RESOLVED:
        needed = None if scale.reason is Reason.NO_SIGNAL_YET else scale.updates_needed
        return (
            _more_micro_batches()
            if so_far.has_ended
            else (_more_steps(so_far, needed, batch, pace), *_more_micro_batches())
        )
    found = [_branch(so_far, batch, pace), *([] if sweep is None else [sweep])]
    return tuple(sorted(found, key=lambda one: one.examples or 0.0))


def _more_steps(run: RunSoFar, needed: int | None, batch: float, pace: Pace | None) -> Surer:
    if needed is None:
        return Surer("more_steps", False, None, None, None, None, "Keep training: nobody can say yet for how long.")
    steps = float(needed)
    hours, usd = _cost({batch: steps}, pace)
    text = f"Keep training until a window holds {wording.cost(steps, hours, usd)}{wording.of_the_plan(run)}"
    return Surer("more_steps", False, steps, steps * batch, hours, usd, text)


def _more_micro_batches() -> tuple[Surer]:
    text = (
        "Split each step into more micro-batches at the same global batch: it costs no examples, and resolves sooner."
    )
    return (Surer("more_micro_batches", False, None, None, None, None, text),)


def _branch(run: RunSoFar, batch: float, pace: Pace | None) -> Surer:
    so_far = sum(point.examples for point in run.spent)
    each = max(BRANCH_SHARE * so_far, BRANCH_MIN_STEPS * max(BRANCH_ARMS) * batch)
    steps_at = {arm * batch: each / (arm * batch) for arm in BRANCH_ARMS}
    steps = sum(steps_at.values())
    hours, usd = _cost(steps_at, pace)
    text = (
        "Branch from a checkpoint at half, once and twice the batch and compare on the same held-out batches: "
        f"about {wording.cost(steps, hours, usd)}."
    )
    return Surer("branch", True, steps, each * len(BRANCH_ARMS), hours, usd, text)


def _sweep(run: RunSetting, priced: "Priced", pace: Pace | None) -> Surer | None:
    whole = trade_off_of(run, priced.critical.value)
    if whole is None or not run.planned_steps or not run.steps_left:
        return None
    # runs of a sweep go from the first step to the end of the plan, the trade-off only from here on
    share = run.planned_steps / run.steps_left
    steps_at = {
        size * priced.critical.value: share * whole.steps(size * priced.critical.value) for size in SWEEP_BATCHES
    }
    steps = sum(steps_at.values())
    hours, usd = _cost(steps_at, pace)
    text = (
        f"Sweep {len(SWEEP_BATCHES)} batches to one loss, a run each: at most {wording.cost(steps, hours, usd)}; "
        "an earlier target costs less, and it calibrates the task."
    )
    examples = sum(size * taken for size, taken in steps_at.items())
    return Surer("sweep", True, steps, examples, hours, usd, text)


def _cost(steps_at: dict[float, float], pace: Pace | None) -> tuple[float | None, float | None]:
    if pace is None:
        return None, None
    seconds = _total(steps_at, pace.seconds)
    return None if seconds is None else seconds / SECONDS_PER_HOUR, _total(steps_at, pace.usd_per_step)


def _total(steps_at: Mapping[float, float], of_a_step: Callable[[float], float | None]) -> float | None:
    """Of all steps; None where it is not known of one of them."""
    each = [(of_a_step(batch), steps) for batch, steps in steps_at.items()]
    known = [value * steps for value, steps in each if value is not None]
    return sum(known) if len(known) == len(each) else None
