"""Whether a run is so young that its noise scale says little about the rest: it rises by orders of magnitude at first.

|G|² falls fast in the first steps of a training and tr Σ less, so φ = tr Σ / |G|² rises as the loss falls (McCandlish
et al. 2018, abstract). A clear number from there is right for the steps at hand and wrong for the plan. Three signs:

- the plan is less than a twentieth done, so the whole run is shorter than the window that would judge it at its end;
- nobody has said a plan, and the run has not had two windows of 16 steps yet, so nobody can see whether φ rises;
- φ has at least doubled over the later half of the steps so far, beyond both intervals. Once half of the plan is done,
  there is no such doubling of steps to come.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import Caution, RunSoFar, SpentPoint
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate

EARLY_SHARE = 0.05
"""Of the plan: what a window of its end holds."""

FEWEST_STEPS = 32
"""Two of the shortest windows."""

RISEN = 2.0
"""Growth over a doubling of the steps that counts; a batch within 2 × of the best one is kept anyway."""

LATE_SHARE = 0.5
"""Of the plan: from here on the steps cannot double again."""


@dataclass(frozen=True, slots=True)
class Before:
    """The noise scale that a run had earlier.

    Attributes:
        step: The last step that is in it.
        value: In examples; None while unresolved.
        high: Upper end of its interval.
    """

    step: int
    value: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Early:
    """Why the noise scale will not stay as it is.

    Attributes:
        clause: After a noise scale.
        sentence: Before advice.
        way_out: For a run that goes on.
    """

    clause: str
    sentence: str
    way_out: str


def why_early(
    now: NoiseScaleEstimate, before: Before | None, *, steps_done: int, planned_steps: int | None
) -> Early | None:
    """What to say beside a noise scale; None where it is not early, or there is no number.

    Args:
        now: At the run's newest step.
        before: When half of the steps were done; None where that is not known.
        steps_done: Optimizer steps so far.
        planned_steps: Of the whole run; None where nobody has said.
    """
    if now.value is None:
        return None
    if planned_steps and steps_done < EARLY_SHARE * planned_steps:
        return _first_steps(steps_done, planned_steps)
    if not planned_steps and 0 < steps_done < FEWEST_STEPS:
        return _without_a_plan(steps_done)
    is_late = bool(planned_steps) and steps_done >= LATE_SHARE * (planned_steps or 0)
    return None if is_late else _rising(now, before, steps_done)


def caution(run: RunSoFar) -> Caution | None:
    """The same before the advice about a run.

    Args:
        run: As it stands.
    """
    before = _half_way(run.spent, run.steps_done)
    found = why_early(run.noise_scale, before, steps_done=run.steps_done, planned_steps=run.planned_steps)
    if found is None:
        return None
    return Caution("early_in_run", found.sentence if run.has_ended else f"{found.sentence} {found.way_out}")


def _first_steps(steps_done: int, planned_steps: int) -> Early:
    share = f"{100 * steps_done / planned_steps:.2g} %"
    look_again = number(EARLY_SHARE * planned_steps)
    return Early(
        f"early: {share} of the plan, and it rises while a run is young",
        f"Only {share} of the plan is done. While a run is young its noise scale rises, often by orders of magnitude: "
        "what is said holds for the steps at hand and not for the plan.",
        f"Look again at step {look_again}.",
    )


def _without_a_plan(steps_done: int) -> Early:
    return Early(
        f"early: {steps_done} steps, and it rises while a run is young",
        f"Only {steps_done} steps are done, too few to see whether the noise scale rises, as it does while a run is "
        "young, often by orders of magnitude.",
        "Look again later; planned_steps= in init() says what is early.",
    )


def _rising(now: NoiseScaleEstimate, before: Before | None, steps_done: int) -> Early | None:
    if before is None or before.value is None or before.high is None or now.value is None or now.low is None:
        return None
    if now.value < RISEN * before.value or now.low <= before.high:
        return None
    factor = f"about {number(float(f'{now.value / before.value:.1g}'))} ×"  # both ends are known to a fifth
    return Early(
        f"rising: {factor} since step {before.step:,}",
        f"The noise scale has risen {factor} since step {before.step:,} and may go on: what is said holds for the "
        "steps at hand and not for a longer run.",
        f"Look again at step {number(2.0 * steps_done)}, or plan a batch that grows.",
    )


def _half_way(spent: Sequence[SpentPoint], steps_done: int) -> Before | None:
    """The last stretch that ends in the first half of the steps."""
    ends_after = steps_done
    for point in reversed(spent):
        if 2 * ends_after <= steps_done:
            return Before(ends_after - 1, point.value, point.high) if ends_after > 0 else None
        if point.num_steps is None:
            return None
        ends_after -= round(point.num_steps)
    return None
