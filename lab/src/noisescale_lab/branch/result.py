"""What branches found, what it means and what it cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from noisescale.run.run import Run
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_lab.branch.comparison import Comparison, Verdict, compare, warning
from noisescale_lab.branch.plan import Arm

# Where a run stood when its branches left it, and what they add to what its noise scale says.


@dataclass(frozen=True, slots=True)
class BranchingPoint:
    """A run at one moment.

    Attributes:
        step: Its last optimizer step that was logged.
        noise_scale: Kind `simple` of the latest window, in examples.
    """

    step: int
    noise_scale: NoiseScaleEstimate


@dataclass(frozen=True, slots=True)
class KappaBounds:
    """Between what κ = B_crit ÷ noise scale lies here; None where branches set no bound.

    Attributes:
        low: Largest batch as good as every smaller one, over the upper end of the noise scale.
        high: Smallest batch that was worse than a smaller one, over its lower end.
    """

    low: float | None
    high: float | None


def point_of(run: Run | None) -> BranchingPoint | None:
    """Where the run stands; None without a run that records."""
    if run is None or not run.is_recording:
        return None
    return BranchingPoint(run.newest_step, run.noise_scale().estimate)


def kappa_bounds(point: BranchingPoint | None, low: float | None, high: float | None) -> KappaBounds | None:
    """What a local critical batch between `low` and `high` says of κ; None where it or the noise scale is unknown.

    Args:
        point: Where the branches left.
        low: Largest batch size that was as good as every smaller one, in examples; None if none was shown to be.
        high: Smallest one that was worse than a smaller one; None if none was.
    """
    if point is None or (low is None and high is None):
        return None
    scale = point.noise_scale
    if scale.value is None or scale.low is None or scale.high is None:
        return None
    # an interval that reaches 0 bounds κ on one side only
    above = high / scale.low if high is not None and scale.low > 0 else None
    return KappaBounds(None if low is None else low / scale.high, above)


def said(point: BranchingPoint, bounds: KappaBounds | None) -> str:
    """The noise scale of that moment, and what the branches make of it."""
    scale = point.noise_scale
    if scale.value is None or scale.low is None or scale.high is None:
        return f"Step {point.step:,}: the noise scale is not resolved there, so these branches stand alone."
    shown = f"Step {point.step:,}: noise scale {scale.value:,.4g} [{scale.low:,.4g}, {scale.high:,.4g}] examples"
    if bounds is None:
        return f"{shown}; these branches do not bound the critical batch."
    ends = [
        part
        for part in (
            None if bounds.low is None else f"above {bounds.low:.3g}",
            None if bounds.high is None else f"below {bounds.high:.3g}",
        )
        if part is not None
    ]
    return f"{shown}; here κ, critical batch ÷ noise scale, is {' and '.join(ends)}."


@dataclass(frozen=True, slots=True)
class ArmResult:
    """An arm after its training.

    Attributes:
        arm: The setting.
        losses: On each held-out batch.
        seconds: Of its training.
        comparison: With the present setting; None for that one itself.
        lr_at_end: The optimizer's rate after it, where a schedule has changed that; None where it stayed.
    """

    arm: Arm
    losses: tuple[float, ...]
    seconds: float
    comparison: Comparison | None = None
    lr_at_end: float | None = None

    @property
    def mean_loss(self) -> float:
        """Over the held-out batches; not a number after divergence."""
        return fmean(self.losses) if all(map(math.isfinite, self.losses)) else math.nan


@dataclass(frozen=True, slots=True)
class LocalCriticalBatch:
    """Where larger batches begin to lose, at the branching point.

    Attributes:
        low: Largest batch that was as good as every smaller one; None if none was shown to be.
        high: Smallest batch that was worse than a smaller one; None if none was.
    """

    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class BranchCost:
    """What all arms took together.

    Attributes:
        steps: Optimizer steps.
        examples: Examples.
        seconds: Training and evaluation.
        usd: None where no price is known.
    """

    steps: int
    examples: int
    seconds: float
    usd: float | None


@dataclass(frozen=True, slots=True)
class BranchResult:
    """Finished branches; print it.

    Attributes:
        before: Mean held-out loss at the branching point.
        arms: The present setting first.
        local_critical_batch: None unless arms differ in batch size alone with equal examples.
        margin: How much worse did not matter.
        cost: What it took.
        meaning: The result in a sentence.
        sweep_id: On the server; None where it was not stored.
        not_stored: Why it was not stored; None where it was.
        point: Where the run stood; None without a run.
        kappa: What that says of κ; None where it says nothing.
    """

    before: float
    arms: tuple[ArmResult, ...]
    local_critical_batch: LocalCriticalBatch | None
    margin: float
    cost: BranchCost
    meaning: str
    sweep_id: str | None = None
    not_stored: str | None = None
    point: BranchingPoint | None = None
    kappa: KappaBounds | None = None

    def __str__(self) -> str:
        rows = [
            f"Held-out loss, {self.before:.4g} before, after each arm; differences with their one-sided limits:",
            f"{'batch':>10}  {'learning rate':>13}  {'steps':>8}  {'loss':>10}  against the present setting",
        ]
        for found in self.arms:
            arm = found.arm
            rows.append(
                f"{arm.batch_size:>10,}  {arm.lr:>13.4g}  {arm.num_steps:>8,}  {found.mean_loss:>10.5g}  "
                f"{_shown(found.comparison)}"
            )
            if found.lr_at_end is not None:
                rows.append(f"Attention: {warning(arm.batch_size, arm.lr, found.lr_at_end)}")
        rows.append(self.meaning)
        if self.point is not None:
            rows.append(said(self.point, self.kappa))
        usd = "" if self.cost.usd is None else f", {self.cost.usd:.2f} USD"
        rows.append(
            f"Cost: {self.cost.steps:,} steps, {self.cost.examples:,} examples, {self.cost.seconds:.1f} s{usd}."
        )
        if self.not_stored is not None:
            rows.append(f"Not stored: {self.not_stored}.")
        return "\n".join(rows)


def local_critical_batch(arms: Sequence[ArmResult], *, margin: float, level: float) -> LocalCriticalBatch:
    """Between which tested batch sizes larger ones begin to lose.

    As good as *every* smaller one: each test at its level, so the chance to pass by luck is not more than for one.

    Source: Merrill et al. 2025, arXiv:2505.23971 (largest k with a loss within 0.01 of all smaller ones), with a test
    in place of the bare comparison.
    """
    rising = sorted(arms, key=lambda found: found.arm.batch_size)
    low: int | None = None
    for place, found in enumerate(rising[1:], start=1):
        verdicts = {
            compare(found.losses, smaller.losses, margin=margin, level=level).verdict for smaller in rising[:place]
        }
        if Verdict.WORSE in verdicts:
            return LocalCriticalBatch(low, found.arm.batch_size)
        low = found.arm.batch_size if verdicts == {Verdict.AS_GOOD} else low
    return LocalCriticalBatch(low, None)


def meaning(arms: Sequence[ArmResult], local: LocalCriticalBatch | None, margin: float) -> str:
    """The result in a sentence."""
    if local is not None:
        return _meaning_of_batches(local, margin)
    present, others = arms[0], arms[1:]
    better = [found for found in others if found.comparison is not None and found.comparison.high < 0]
    if better:
        best = min(better, key=lambda found: found.mean_loss)
        assert best.comparison is not None
        return (
            f"Batch {best.arm.batch_size:,} with learning rate {best.arm.lr:.4g} ends lower than the present setting "
            f"by {-best.comparison.difference:.3g}, at least {-best.comparison.high:.3g}: a short branch favours it, "
            "and favours small learning rates more than a long run does."
        )
    worse = [found for found in others if found.comparison is not None and found.comparison.verdict is Verdict.WORSE]
    if len(worse) == len(others):
        return (
            f"Every other arm is worse by more than {margin:g}: the present batch {present.arm.batch_size:,} and "
            f"learning rate {present.arm.lr:.4g} stay."
        )
    return "No arm is better than the present setting by more than chance: stay, or branch again with more steps."


def _meaning_of_batches(local: LocalCriticalBatch, margin: float) -> str:
    if local.low is not None and local.high is not None:
        return (
            f"Batch {local.low:,} is as good as every smaller one per example (within {margin:g}), batch "
            f"{local.high:,} is worse: here the local critical batch lies between them."
        )
    if local.low is not None:
        return (
            f"Batch {local.low:,}, as good as every smaller one per example (within {margin:g}), can be used here; "
            "the local critical batch is larger than that, and no larger batch was shown to lose."
        )
    if local.high is not None:
        return (
            f"Batch {local.high:,} loses more than {margin:g} for the same examples: the local critical batch is below."
        )
    return "Noise hides whether larger batches lose: use more held-out batches or a longer branch."


def _shown(comparison: Comparison | None) -> str:
    if comparison is None:
        return "(present)"
    if math.isinf(comparison.difference) or math.isnan(comparison.difference):
        return "diverged"
    words = {Verdict.AS_GOOD: "as good", Verdict.WORSE: "worse", Verdict.OPEN: "open"}
    shown = f"{comparison.difference:+.4g} [{comparison.low:+.4g}, {comparison.high:+.4g}]"
    return f"{shown}, {words[comparison.verdict]}"
