"""Whether a run's learning rate is too low, right or too high, with odds, from the path of its parameters.

The path ratio q of `estimators/path.py` rises with y = log₂(rate / best rate); how fast, and how surely, runs of known
best rate have told (`rate_coefficients.json`). With q = offset + slope · y + error and y ~ N(0, prior²), what is known
of y is normal again. The error of the measurement adds to the scatter between runs.

The push of the last half of the updates is read in the same way. The two err in different tasks, and their mean counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

from noisescale_core.advice.evidence.kappa import UNKNOWN_PROGRESS
from noisescale_core.advice.learning_rate.rate_coefficients import (
    SCALE_OF_PUSH,
    Line,
    OwnLines,
    PathFamily,
    PushLine,
    Schedule,
    coefficients,
    family_of,
)
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.advice.words import of_divergence
from noisescale_core.advice.words import of_the_rate as wording
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.path import Path, PathRatio, Promised, Push, Reading, Z, path_ratio
from noisescale_core.estimators.promise import KeptShare, LossMoment, PromiseMoment, kept_share

Word = Literal["too_low", "perhaps_too_low", "about_right", "unclear", "perhaps_too_high", "too_high"]

SURE, PERHAPS = 1.0, 0.75
"""Octaves from the best rate beyond which it is too low or too high, and perhaps so."""

FAR_BELOW, FAR_ABOVE = -2.0, 1.0
"""Octaves from the best rate beyond which odds of a batch do not hold: at twice the best rate smaller batches are right
less often than is said, at half of it larger ones still as often (decision 38)."""

RIGHT = 0.6
"""How likely the best rate lies within a factor 2, at least, where the present one is about right: probably."""

FEWEST_UPDATES = 50

FARTHEST = 3.0
"""Octaves from the best rate: the runs that the coefficients come from went no farther."""


@dataclass(frozen=True, slots=True)
class RateVerdict:
    """What is said of a learning rate; octaves are log₂(rate / best rate).

    Attributes:
        verdict: The word; None where nothing can be said.
        headline: The same in a few words.
        reason: Why, in a sentence.
        octaves: How far the rate is from the best one, below 0 too low; None where nothing is said.
        low: Lower end of the 95 % interval of that.
        high: Upper end.
        factor: Best rate / present rate, 2^-octaves.
        factor_low: Lower end of its interval.
        factor_high: Upper end.
        probability: That the best rate lies on the side that is said; within a factor 2, where it is about right.
        ratio: q, in octaves, with the interval of its measurement; None where no path is known.
        ratio_low: Lower end.
        ratio_high: Upper end.
        push: How the last half of the updates went along the path, above 0 on and below 0 back, with the interval of
            its measurement; None where that is not known.
        push_low: Lower end.
        push_high: Upper end.
        num_updates: Updates of the path.
        progress: Share of the plan that the path has; None without a plan.
        schedule: Of the learning rate so far.
        calibration: Which runs of one's own it is read against, as a sentence; None where there are none.
        promised_fall: Of the loss, that the updates promised to first order without the noise of their batches, with
            the interval of its measurement; None where it is not measured.
        promised_fall_low: Lower end.
        promised_fall_high: Upper end.
        num_promised_updates: Updates that it is of, the latest ones of the path.
        kept_share: Share of the promise that came over the last half of the steps; None where that is not known.
        kept_share_low: Lower end of its interval.
        kept_share_high: Upper end.
        kept_share_reason: Why no share is known, as a sentence; None where one is.
    """

    verdict: Word | None
    headline: str
    reason: str
    octaves: float | None = None
    low: float | None = None
    high: float | None = None
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    probability: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    push: float | None = None
    push_low: float | None = None
    push_high: float | None = None
    num_updates: int = 0
    progress: float | None = None
    schedule: Schedule = "unknown"
    calibration: str | None = None
    promised_fall: float | None = None
    promised_fall_low: float | None = None
    promised_fall_high: float | None = None
    num_promised_updates: int = 0
    kept_share: float | None = None
    kept_share_low: float | None = None
    kept_share_high: float | None = None
    kept_share_reason: str | None = None

    def __str__(self) -> str:
        return f"{self.headline}\n{self.reason}"


@dataclass(frozen=True, slots=True)
class Octaves:
    """y = log₂(rate / best rate), a normal.

    Attributes:
        mean: Its mean.
        sd: Its standard deviation.
        beyond: By how much the path says more than runs of known best rate can tell, in octaves; 0 where it does not.
    """

    mean: float
    sd: float
    beyond: float = 0.0

    def below(self, octaves: float) -> float:
        """How likely y is smaller."""
        return NormalDist(self.mean, self.sd).cdf(octaves)


def rate_verdict(
    path: Path | None,
    *,
    optimizer: str | None,
    planned_steps: int | None = None,
    has_ended: bool = False,
    schedule: Schedule = "unknown",
    divergence: Divergence | None = None,
    own: OwnLines | None = None,
) -> RateVerdict:
    """The verdict on a run's learning rate.

    Args:
        path: Of the run so far; None where it is not measured.
        optimizer: Class name.
        planned_steps: Of the whole run; None where nobody has said.
        has_ended: The run takes no more steps, so that all of it is done where no plan is known.
        schedule: Of the learning rate.
        divergence: Since when loss or gradients are not finite; None where they are.
        own: What runs of one's own say, of this family of optimizers and this schedule.
    """
    family = family_of(optimizer, 0.0 if path is None else path.momentum)
    known = None if family is None else coefficients().families[family]
    measured = None if path is None or known is None else path_ratio(with_momentum(path, known))
    if path is None or family is None or known is None or measured is None:
        return _nothing(wording.not_known(optimizer) if known is None else wording.NOT_MEASURED, path, measured)
    if divergence is not None:
        return _nothing(of_divergence.sentence(divergence, until_step=None), path, measured)
    progress = progress_of(path, planned_steps, has_ended=has_ended)
    early = _too_early(path, known, progress, optimizer, planned_steps)
    if early is not None:
        return _nothing(early, path, measured, progress, schedule)
    share = UNKNOWN_PROGRESS if progress is None else progress
    line = coefficients().line_at(family, share, schedule, own)
    of_push = coefficients().push_at(family, share, schedule, own)
    if path.push is None or of_push is None:
        path, found = path._replace(push=None), octaves_of(measured, line)
    else:
        found = octaves_of_both(measured, line, path.push, of_push)
    return _said(found, path, measured, progress, schedule, None if own is None else own.said)


def with_promise(said: RateVerdict, losses: Sequence[LossMoment], promises: Sequence[PromiseMoment]) -> RateVerdict:
    """The verdict with what the updates have promised, and what came of it; it does not rest on that.

    Args:
        said: The verdict.
        losses: Since the start of the path, oldest first.
        promises: The same.
    """
    found = kept_share(losses, promises)
    promised = promises[-1].promised if promises else Promised()
    if promised.num_updates:
        of_sum = Reading(promised.total, math.sqrt(promised.variance))
        said = replace(
            said,
            promised_fall=of_sum.value,
            promised_fall_low=of_sum.low,
            promised_fall_high=of_sum.high,
            num_promised_updates=int(promised.num_updates),
        )
    if not isinstance(found, KeptShare):
        return replace(said, kept_share_reason=wording.NO_KEPT_SHARE[found])
    return replace(said, kept_share=found.value, kept_share_low=found.low, kept_share_high=found.high)


def progress_of(path: Path, planned_steps: int | None, *, has_ended: bool = False) -> float | None:
    """Share of the plan that a path has; None where no plan is known and the run goes on.

    Args:
        path: Of the run so far.
        planned_steps: Of the whole run.
        has_ended: It takes no more steps.
    """
    if planned_steps:
        return min(1.0, path.num_updates / planned_steps)
    return 1.0 if has_ended else None


def octaves_of(measured: Reading, line: Line) -> Octaves:
    """What is known of y once a reading is.

    Args:
        measured: q, or asinh(SCALE_OF_PUSH · push), with its own error.
        line: How it depends on y.
    """
    prior = coefficients().prior_sd
    noise = line.scatter**2 + measured.sd**2
    mean = line.slope * prior**2 * (measured.value - line.offset) / (noise + (line.slope * prior) ** 2)
    told = max(-FARTHEST, min(FARTHEST, mean))
    return Octaves(told, 1 / math.sqrt(1 / prior**2 + line.slope**2 / noise), abs(mean - told))


def octaves_of_both(measured: PathRatio, line: Line, push: Push, of_push: PushLine) -> Octaves:
    """What is known of y once q and the push are: the mean of what each tells.

    Args:
        measured: q with its own error.
        line: How q depends on y.
        push: With its own error.
        of_push: How it depends on y, and what the mean leaves open.
    """
    reading = bent(push)
    by_ratio, by_push = octaves_of(measured, line), octaves_of(reading, of_push.line)
    errors = (measured.sd * _weight(line) / 2, reading.sd * _weight(of_push.line) / 2)
    mean, beyond = (by_ratio.mean + by_push.mean) / 2, (by_ratio.beyond + by_push.beyond) / 2
    return Octaves(mean, math.hypot(of_push.both_sd, *errors), beyond if abs(mean) == FARTHEST else 0.0)


def bent(push: Push) -> Reading:
    """Asinh(SCALE_OF_PUSH · push), which is nearly straight in y.

    Args:
        push: With its own error.
    """
    scaled = SCALE_OF_PUSH * push.value
    return Reading(math.asinh(scaled), SCALE_OF_PUSH * push.sd / math.sqrt(1 + scaled * scaled))


def _weight(line: Line) -> float:
    """Of a reading in what it tells of y, in octaves."""
    prior = coefficients().prior_sd
    return line.slope * prior**2 / (line.scatter**2 + (line.slope * prior) ** 2)


def with_momentum(path: Path, known: PathFamily) -> Path:
    """The path with the momentum that stands for the family's.

    Args:
        path: As measured.
        known: The family.
    """
    return path if known.momentum is None else path._replace(momentum=known.momentum)


def _too_early(
    path: Path, known: PathFamily, progress: float | None, optimizer: str | None, planned_steps: int | None
) -> str | None:
    """Why nothing is said yet; without a plan an optimizer that tells late says nothing at all."""
    late = known.from_progress > UNKNOWN_PROGRESS
    if progress is None and late:
        return wording.needs_a_plan(optimizer or "")
    if path.num_updates < FEWEST_UPDATES:
        return wording.too_few(int(path.num_updates), FEWEST_UPDATES)
    if progress is not None and progress < known.from_progress:
        return wording.too_early(progress, known.from_progress, planned_steps)
    return None


def far_off(said: RateVerdict) -> RateOff | None:
    """How far a learning rate is off; None where it is not, or not so far that odds of a batch do not hold.

    A rate that follows no known schedule may have been set meanwhile, and the path remembers the one before.

    Args:
        said: The verdict on it.
    """
    if said.schedule == "unknown":
        return None
    octaves, factor, low, high = said.octaves, said.factor, said.factor_low, said.factor_high
    if octaves is None or factor is None or low is None or high is None or not _is_far(octaves):
        return None
    return RateOff(factor, low, high)


def _is_far(octaves: float) -> bool:
    return not FAR_BELOW <= octaves <= FAR_ABOVE


def word_of(found: Octaves) -> tuple[Word, float]:
    """The word for what is known of y, and how likely it is right.

    Args:
        found: What is known.
    """
    is_low = found.mean < 0
    side = found.below(0.0) if is_low else 1 - found.below(0.0)
    within = found.below(1.0) - found.below(-1.0)
    if abs(found.mean) > SURE:
        return ("too_low" if is_low else "too_high"), side
    if abs(found.mean) > PERHAPS:
        return ("perhaps_too_low" if is_low else "perhaps_too_high"), side
    return ("about_right" if within >= RIGHT else "unclear"), within


def _said(
    found: Octaves,
    path: Path,
    measured: PathRatio,
    progress: float | None,
    schedule: Schedule,
    calibration: str | None,
) -> RateVerdict:
    word, probability = word_of(found)
    # an interval reaches as far as the path says, whatever the verdict's own end
    low, high = (found.mean + side * (Z * found.sd + found.beyond * (side * found.mean > 0)) for side in (-1, 1))
    return RateVerdict(
        verdict=word,
        headline=wording.HEADLINES[word],
        reason=wording.reason(
            word,
            path.num_updates,
            measured.value,
            found.mean,
            low,
            high,
            probability,
            push=None if path.push is None else path.push.value,
            is_beyond=found.beyond > 0,
            is_far=_is_far(found.mean),
            calibration=calibration,
        ),
        octaves=found.mean,
        low=low,
        high=high,
        factor=2**-found.mean,
        factor_low=2**-high,
        factor_high=2**-low,
        probability=probability,
        ratio=measured.value,
        ratio_low=measured.low,
        ratio_high=measured.high,
        push=None if path.push is None else path.push.value,
        push_low=None if path.push is None else path.push.low,
        push_high=None if path.push is None else path.push.high,
        num_updates=int(path.num_updates),
        progress=progress,
        schedule=schedule,
        calibration=calibration,
    )


def _nothing(
    why: str,
    path: Path | None,
    measured: PathRatio | None,
    progress: float | None = None,
    schedule: Schedule = "unknown",
) -> RateVerdict:
    return RateVerdict(
        verdict=None,
        headline=wording.NO_VERDICT,
        reason=why,
        ratio=None if measured is None else measured.value,
        ratio_low=None if measured is None else measured.low,
        ratio_high=None if measured is None else measured.high,
        num_updates=0 if path is None else int(path.num_updates),
        progress=progress,
        schedule=schedule,
    )
