"""The runs of one batch size and learning rate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from noisescale_server.analysis.sweeps.steps_to_target.crossing import MetricCurve


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a sweep.

    Attributes:
        batch_size: Examples per optimizer step.
        lr: Learning rate.
        seed: Which repeat it is; None where nobody said.
        curve: Its metric; None where it diverged.
    """

    batch_size: float
    lr: float
    seed: int | None
    curve: MetricCurve | None


@dataclass(frozen=True, slots=True)
class Setting:
    """The repeats of one batch size and learning rate.

    Attributes:
        batch_size: Examples per optimizer step.
        lr: Learning rate.
        trials: Its runs, at least one.
    """

    batch_size: float
    lr: float
    trials: tuple[Trial, ...]

    @property
    def curves(self) -> tuple[MetricCurve, ...]:
        """The metric of every run; empty where one of them diverged, since their mean is then not a number."""
        found = tuple(trial.curve for trial in self.trials if trial.curve is not None)
        return found if len(found) == len(self.trials) else ()


def settings_of(trials: Iterable[Trial]) -> tuple[Setting, ...]:
    """The trials by batch size and learning rate, both rising, and within a setting by seed."""
    ordered = sorted(trials, key=lambda trial: (*_place(trial), trial.seed is None, trial.seed or 0))
    return tuple(Setting(batch_size, lr, tuple(here)) for (batch_size, lr), here in groupby(ordered, key=_place))


def by_batch_size(settings: Sequence[Setting]) -> list[tuple[float, list[Setting]]]:
    """Settings in the order of `settings_of`, those of a batch size together."""
    return [(size, list(here)) for size, here in groupby(settings, key=lambda setting: setting.batch_size)]


def _place(trial: Trial) -> tuple[float, float]:
    return trial.batch_size, trial.lr
