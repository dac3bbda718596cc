"""What is said of a run's learning rate."""

from typing import TYPE_CHECKING

from noisescale_core.advice.parts.numbers import chance, number, percent, ratio

if TYPE_CHECKING:
    from noisescale_core.advice.parts.parts import RateOff


NO_VERDICT = "No verdict on the learning rate"

HEADLINES = {
    "too_low": "Learning rate: too low",
    "perhaps_too_low": "Learning rate: perhaps too low",
    "about_right": "Learning rate: about right",
    "unclear": "Learning rate: not clear",
    "perhaps_too_high": "Learning rate: perhaps too high",
    "too_high": "Learning rate: too high",
}

RATE_FIRST = "Odds of a batch do not all hold at a rate so far off, so set the rate first."

SET_FIRST = "Set the learning rate first"
NO_SCHEDULE = "There is no schedule of batches before the learning rate is set."

NOT_MEASURED = (
    "The path of the parameters is not measured: watch(model, optimizer) measures it, unless judge_rate=False."
)

NO_KEPT_SHARE = {
    "no_promise": "What the updates promise is not measured: it takes SGD, Adam or AdamW and two small batches a step "
    "at least, with Adam in one process.",
    "no_loss": "No training loss was logged, so that nobody knows what came of the promise.",
    "too_few": "Too few losses were logged, or updates looked at, to tell what came of the promise in the last half of "
    "the steps.",
    "too_noisy": "Losses or the promise scatter too much to tell which share of it came in the last half of the steps.",
}
"""Why no share of the promise is known."""


def in_short(rate: "RateOff") -> str:
    """What comes before the batch, in one line.

    Args:
        rate: How far the learning rate is off.
    """
    if rate.is_too_high:
        return f"The present rate is about {ratio(1 / rate.factor)} the best one: the batch comes after it."
    return f"The best rate is about {ratio(rate.factor)} the present one: the batch comes after it."


def change_it(rate: "RateOff") -> str:
    """What to do about it.

    Args:
        rate: How far the learning rate is off.
    """
    times = ratio(1 / rate.factor if rate.is_too_high else rate.factor)
    how = f"Set it about {times} {'lower' if rate.is_too_high else 'higher'}"
    return f"{how}, and look again: the noise scale of the new rate is known after a window."


def before_the_batch(rate: "RateOff") -> str:
    """Why the batch is not judged yet.

    Args:
        rate: How far the learning rate is off.
    """
    if rate.is_too_high:
        ends = f"[{number(1 / rate.high)}, {number(1 / rate.low)}]"
        off = f"The present rate is {ratio(1 / rate.factor)} {ends} the best one"
        why = "So far above it the noise scale is smaller than there, and that a smaller batch is cheaper is"
    else:
        off = f"The best rate is {ratio(rate.factor)} [{number(rate.low)}, {number(rate.high)}] the present one"
        why = "So far below it the noise scale is larger than there, and that a larger batch is cheaper is"
    return f"{off}. {why} less likely than its odds say."


def beside_the_batch(word: str, factor: float, low: float, high: float, odds: float | None) -> str:
    """That a rate which goes with another batch starts from one that is off.

    Args:
        word: "too low" or "too high".
        factor: Best rate over the present one.
        low: Lower end of its 95 % interval.
        high: Upper end.
        odds: That the best rate lies on that side.
    """
    sure = "" if odds is None else f", {chance(odds)} sure"
    best = f"{ratio(factor)} [{number(low)}, {number(high)}] it"
    return (
        f"The present learning rate looks {word}{sure}: the best one is {best}. The rate above is the present one made "
        "to fit the batch: set the rate first, or multiply the two."
    )


def not_known(optimizer: str | None) -> str:
    """Why an optimizer has no verdict.

    Args:
        optimizer: Class name; None where no optimizer is known.
    """
    if optimizer is None:
        return "No optimizer is known, so its updates cannot be judged: give it to watch(model, optimizer)."
    return f"How updates of {optimizer} relate to its best learning rate is not known: no verdict."


def needs_a_plan(optimizer: str) -> str:
    """Why an optimizer that tells late has no verdict without a plan.

    Args:
        optimizer: Class name.
    """
    return f"Updates of {optimizer} tell nothing before half of the plan, and no plan is known: planned_steps= says it."


def too_few(num_updates: int, fewest: int) -> str:
    """Why a path is too short.

    Args:
        num_updates: Of the path.
        fewest: That tell something.
    """
    return f"{num_updates} steps tell too little: look again after {fewest}."


def too_early(progress: float, from_progress: float, planned_steps: int | None) -> str:
    """Why it is too early in the plan.

    Args:
        progress: Share of the plan.
        from_progress: From which share on something is told.
        planned_steps: Of the whole run.
    """
    step = "" if planned_steps is None else f": look again at step {number(from_progress * planned_steps)}"
    return f"{percent(progress)} of the plan is too early{step}."


def reason(
    word: str,
    num_updates: float,
    octaves: float,
    mean: float,
    low: float,
    high: float,
    probability: float,
    *,
    push: float | None = None,
    is_beyond: bool = False,
    is_far: bool = False,
    calibration: str | None = None,
) -> str:
    """Why, in two to five sentences.

    Args:
        word: The verdict.
        num_updates: Of the path.
        octaves: q.
        mean: Of y = log₂(rate / best rate).
        low: Lower end of its interval.
        high: Upper end.
        probability: That the verdict is right.
        push: Of the last half of the updates; None where it is not known.
        is_beyond: The rate is farther off than runs of known best rate can tell.
        is_far: So far off that what is said of the batch does not hold.
        calibration: Which runs of one's own the path is read against, as a sentence; None where there are none.
    """
    walked = f"Over {number(num_updates)} steps the parameters got {ratio(2**-octaves)} as far as a random walk of the "
    walked += f"same updates would: {_meaning(octaves)}{_lately(octaves, push)}."
    best = f"The best rate is {ratio(2**-mean)} [{number(2**-high)}, {number(2**-low)}] the present one"
    if is_beyond:
        # no bound: the interval reaches to either side of the verdict's own end
        best += ", perhaps far more" if mean < 0 else ", perhaps far less"
    against = "" if calibration is None else f" {calibration}"
    if word in ("about_right", "unclear"):
        return f"{walked} {best}, within a factor 2 in {chance(probability)} of such runs.{against}"
    side = "higher" if mean < 0 else "lower"
    first = f" {RATE_FIRST}" if is_far else ""
    return f"{walked} {best}, and {side} with a probability of {chance(probability)}.{against}{first}"


def _lately(octaves: float, push: float | None) -> str:
    if push is None:
        return ""
    lately = _meaning(-push)
    return ", in the last half, too" if lately == _meaning(octaves) else f", and in the last half {lately}"


def _meaning(octaves: float) -> str:
    if abs(octaves) < 0.1:
        return "they neither push on nor take each other back"
    return "they push on in one direction" if octaves < 0 else "they take each other back"
