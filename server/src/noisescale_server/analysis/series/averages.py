"""One noise scale for a run, averaged in four ways that are four different numbers.

B_crit = E_min / S_min is the noise scale averaged over ideal steps (McCandlish et al. 2018, arXiv:1812.06162, appendix
D.1); the plain mean over steps predicts it as well on small real tasks. The ratio of whole-run sums is none of these
and reads several times low. The start of a run says almost nothing about the whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisescale_core.theory.trade_off import step_efficiency
from noisescale_server.analysis.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Window:
    """A resolved window of a run.

    Attributes:
        num_steps: Steps that it stands for.
        batch_size: Mean global batch over them, in examples.
        value: Noise scale, in examples.
        low: Lower end of its interval.
        high: Upper end of its interval.
        level: Confidence level of the interval.
    """

    num_steps: float
    batch_size: float
    value: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class Averages:
    """Averages of the resolved windows, in examples; the interval of each is the same average of the windows' ends.

    Attributes:
        run_average: Equal weight to every step.
        ideal_step_average: Weights B / (B + φ) of a step: progress in ideal steps.
        equal_example_average: Equal weight to every example.
        start: The first resolved window.
    """

    run_average: Estimate
    ideal_step_average: Estimate
    equal_example_average: Estimate
    start: Estimate


def averages(windows: Sequence[Window]) -> Averages | None:
    """The averages of a run, oldest window first; None without a resolved window.

    Windows overlap and drift together, so that averaging does not make their intervals narrower.
    """
    if not windows:
        return None
    first = windows[0]
    return Averages(
        run_average=_mean(windows, lambda one: one.num_steps),
        ideal_step_average=_mean(windows, lambda one: one.num_steps * step_efficiency(one.value, one.batch_size)),
        equal_example_average=_mean(windows, lambda one: one.num_steps * one.batch_size),
        start=Estimate(first.value, first.low, first.high, first.level),
    )


def _mean(windows: Sequence[Window], weight: Callable[[Window], float]) -> Estimate:
    weights = [weight(one) for one in windows]
    total = sum(weights)

    def mean(name: str) -> float:
        return sum(each * float(getattr(one, name)) for each, one in zip(weights, windows, strict=True)) / total

    return Estimate(mean("value"), mean("low"), mean("high"), windows[0].level)
