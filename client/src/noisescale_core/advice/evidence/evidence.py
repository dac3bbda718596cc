"""What a critical batch is known from: nothing yet, the run's own noise scale, or sweeps and earlier runs of its task.

Each kind gives B_crit with its errors and odds, and how sure κ is.
Nothing stands in for another kind: what only a run that has begun can be told is left out of the other two by type.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from noisescale_core.advice.evidence.critical_belief import (
    LARGEST,
    SMALLEST,
    Critical,
    critical_of,
    expected_critical,
    law_of,
    near,
)
from noisescale_core.advice.evidence.kappa import UNCALIBRATED, Kappa
from noisescale_core.advice.parts import reasons
from noisescale_core.advice.parts.flags import WRONG
from noisescale_core.advice.parts.known_noise_scale import is_decayed
from noisescale_core.advice.parts.parts import Interval, LatestNoiseScale, RunSetting, RunSoFar
from noisescale_core.estimators.belief import Belief
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED, NoiseScaleEstimate, Reason, State
from noisescale_core.theory.intervals import estimate_from_interval
from noisescale_core.theory.learning_rate import averages_gradients

NOT_MEASURED = LatestNoiseScale.of(NOTHING_MEASURED, NOTHING_MEASURED.reason)
"""The noise scale of a task without a resolved run."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The run's own noise scale, tied to a critical batch by κ.

    Attributes:
        kappa: What is known of B_crit / B_simple.
    """

    kappa: Kappa = UNCALIBRATED

    @property
    def num_measurements(self) -> int:
        """Sweeps and branches that say something of κ."""
        return self.kappa.measurements

    def noise_scale_of(self, run: RunSetting) -> LatestNoiseScale:
        """What the answer rests on.

        Args:
            run: Whose noise scale it is.
        """
        now = begun(run)
        return LatestNoiseScale.of(now.noise_scale, now.reason, now.noise_scale_step)

    def critical(self, run: RunSetting) -> Critical | None:
        """κ × the noise scale by all looks, beside what is usual.

        None without a batch, where the noise scale is wrong, and before the first look unless a law tells.

        Args:
            run: Whose noise scale it is.
        """
        now, batch = begun(run), run.batch_size
        phi = now.belief or (None if is_decayed(now) else belief_of(now.noise_scale))
        if batch is None or not SMALLEST < batch < LARGEST or is_wrong(now):
            return None
        law = law_of(run)
        usual, floor = ((near(batch),), 0.0) if law is None else ((near(batch), law.usual), law.floor)
        if phi is None:
            return None if law is None else expected_critical(usual, floor=floor)
        return critical_of(
            phi,
            log_mean=_log_mean(self.kappa, now),
            odds_log_sd=self.kappa.odds_log_sd,
            shown_log_sd=self.kappa.log_sd,
            usual=usual,
            floor=floor,
        )

    def is_resolved(self, run: RunSetting) -> bool:
        """Whether the noise scale is resolved, and not tentative.

        Args:
            run: Whose noise scale it is.
        """
        return begun(run).noise_scale.state is State.RESOLVED


@dataclass(frozen=True, slots=True)
class Swept:
    """The critical batch of the next run of a task, from sweeps and earlier runs; both errors are in its interval.

    Attributes:
        swept: B_crit in examples.
        kappa: What is known of B_crit / B_simple.
        sweeps: Critical batches of the sweeps that were fitted.
        num_runs: Earlier runs whose noise scale counts.
        noise_scale: Of these runs together; None without any.
        curve: What the newest sweep predicts; None where none tells.
    """

    swept: Interval
    kappa: Kappa
    sweeps: tuple[float, ...] = ()
    num_runs: int = 0
    noise_scale: LatestNoiseScale | None = None
    curve: "SweptCurve | None" = None

    @property
    def num_measurements(self) -> int:
        """Sweeps and branches that say something of κ or of B_crit itself."""
        return max(self.kappa.measurements, len(self.sweeps))

    def noise_scale_of(self, run: RunSetting) -> LatestNoiseScale:
        """That of the task's earlier runs.

        Args:
            run: The setting that the next run is changed from.
        """
        return self.noise_scale or NOT_MEASURED

    def critical(self, run: RunSetting) -> Critical | None:
        """B_crit; its error is that of the model.

        Args:
            run: The setting that the next run is changed from.
        """
        value, level = self.swept.value, self.swept.level
        sd = math.log(self.swept.high / self.swept.low) / (2 * NormalDist().inv_cdf(0.5 + level / 2))
        if not SMALLEST < value < LARGEST:
            return None
        estimate = estimate_from_interval(value, low=value, high=value, model_log_sd=sd, level=level)
        return Critical(estimate, Belief.of_interval(value, self.swept.low, self.swept.high, level))

    def is_resolved(self, run: RunSetting) -> bool:
        """A fitted critical batch is.

        Args:
            run: The setting that the next run is changed from.
        """
        return True


@dataclass(frozen=True, slots=True)
class SweptCurve:
    """Steps to a sweep's target by batch size.

    Attributes:
        metric: What the target is of; None: the training loss.
        target: Its value; None where the sweep names none.
        points: (batch size, steps, low, high), by batch size.
    """

    metric: str | None
    target: float | None
    points: tuple[tuple[float, float, float, float], ...]

    def steps(self, batch_size: float) -> Interval | None:
        """Steps at a batch size with the interval of the curve, straight on log axes; None outside the sweep's sizes.

        Args:
            batch_size: In examples.
        """
        if not self.points or not self.points[0][0] <= batch_size <= self.points[-1][0]:
            return None
        place = next(at for at, point in enumerate(self.points) if point[0] >= batch_size)
        above, below = self.points[place], self.points[max(place - 1, 0)]
        if above[0] == below[0]:
            return Interval(*above[1:])
        share = math.log(batch_size / below[0]) / math.log(above[0] / below[0])
        columns = zip(below[1:], above[1:], strict=True)
        return Interval(*(math.exp((1 - share) * math.log(low) + share * math.log(high)) for low, high in columns))


@dataclass(frozen=True, slots=True)
class Prior:
    """A task of which no measurement names a critical batch.

    Attributes:
        kappa: What is known of B_crit / B_simple.
        optimizer: Class of the optimizer that was asked about.
        refused: Why the task's newest sweep was not fitted; None where there is none.
        updates_needed: Steps that would resolve a run of the task; None where none is near.
    """

    kappa: Kappa = UNCALIBRATED
    optimizer: str | None = None
    refused: str | None = None
    updates_needed: int | None = None

    @property
    def num_measurements(self) -> int:
        """Sweeps and branches that say something of κ."""
        return self.kappa.measurements

    def noise_scale_of(self, run: RunSetting) -> LatestNoiseScale:
        """None is known.

        Args:
            run: The setting that the next run is changed from.
        """
        return NOT_MEASURED

    def critical(self, run: RunSetting) -> None:
        """Unknown.

        Args:
            run: The setting that the next run is changed from.
        """

    def is_resolved(self, run: RunSetting) -> bool:
        """False: no setting of a task without runs is.

        Args:
            run: The setting that the next run is changed from.
        """
        return False


Evidence = Measured | Swept | Prior


def begun(run: RunSetting) -> RunSoFar:
    """The same run, as only one that has begun has a noise scale of its own.

    Args:
        run: Of `Measured`.
    """
    assert isinstance(run, RunSoFar)
    return run


def _log_mean(kappa: Kappa, run: RunSoFar) -> float:
    """Mean of ln κ at the moment that the noise scale is of."""
    averages = averages_gradients(run.optimizer, run.momentum)
    if run.known is None:
        return kappa.log_mean_at(run.progress, averages_gradients=averages)
    progress = None if run.progress is None else run.progress * run.known.share
    return kappa.log_mean_at(progress, relative_rate=run.known.relative_rate, averages_gradients=averages)


def is_wrong(run: RunSoFar) -> bool:
    """Whether its rows say that the noise scale is not that of the run's examples.

    Args:
        run: As it stands.
    """
    is_bug = any(reasons.words_of(reason).is_bug for reason in (run.noise_scale.reason, run.reason))
    return is_bug or run.noise_scale.reason is Reason.TRACE_COV_OF_ROUNDING or bool(run.flags & sum(WRONG))


def belief_of(noise_scale: NoiseScaleEstimate) -> Belief | None:
    """What a window says by itself; None where it is not bounded, or so far from any run's that nothing follows.

    Args:
        noise_scale: Of a window, in examples.
    """
    value, high = noise_scale.value, noise_scale.high
    if value is None or high is None or not SMALLEST < value <= high < LARGEST:
        return None
    return Belief.of_interval(value, noise_scale.low or 0.0, high, noise_scale.level)
