"""The sentences of a recommendation: plain, present tense, the reader's units, cost said with gain."""

import math

from noisescale_core.advice.decay import is_decayed, last_informed_step
from noisescale_core.advice.evidence import Evidence
from noisescale_core.advice.numbers import duration, number
from noisescale_core.advice.parts import Caution, DecisionWord, Interval, Predicted, RunSoFar
from noisescale_core.advice.predictions import Banded
from noisescale_core.advice.question import Worth
from noisescale_core.advice.words import flags, reasons
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.time_to_resolve import RESOLVED_Z, run_until_resolved
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, Reason, State
from noisescale_core.theory.learning_rate import Family, Rule, family_of

WINDOW_SHARE, MIN_UPDATES = 0.05, 16
"""Of the latest window: its share of the run, and its least updates."""

NOT_ENOUGH = "Not enough evidence yet"
"""The headline where nothing can be recommended, of a run and of a task."""

_NO_PRICE = (
    "Nobody has said what a step is worth, so steps and examples are balanced: the best batch is the critical batch. "
    "Say how many examples you would spend to save a step (examples_per_step), or prefer one (preference)."
)
DECAYED = (
    "The learning rate is below a tenth of its peak, and the noise scale rises as it falls: what is measured now is "
    "mostly the decay's."
)


def ratio(value: float) -> str:
    """A ratio as people say it: 2.9 ×, 0.4 ×, 12 ×."""
    return f"{value:.0f} ×" if value >= 10 else f"{value:.1f} ×" if value >= 0.1 else f"{value:.2g} ×"


def batch(size: float) -> str:
    """A batch size that is in use, never rounded: 2,048."""
    return f"{size:,.0f}" if size == round(size) else number(size)


def cost(steps: float | None, hours: float | None, usd: float | None) -> str:
    """What something takes, as a phrase: 1,200 steps, 3.4 h, 41 USD."""
    known = (
        None if steps is None else f"{number(math.ceil(steps))} steps",
        None if hours is None else duration(hours),
        None if usd is None else f"{number(usd)} USD",
    )
    return ", ".join(said for said in known if said is not None)


def missing(run: RunSoFar) -> str:
    """Why nothing can be said yet."""
    scale = run.noise_scale
    if scale.reason is Reason.NO_ESTIMATES and run.reason is None and run.batch_size is None:
        return "No measurements yet."
    words = reasons.words_of(scale.reason)
    if scale.reason is Reason.NO_ESTIMATES:
        return reasons.words_of(run.reason).sentence or words.sentence
    if run.batch_size is None:
        return reasons.OF_FLAGS[Flags.BATCH_SIZE_UNKNOWN].sentence
    if scale.value is not None:
        return "The noise scale is so far from any run's that no batch follows from it: look at the measurement."
    if scale.low is not None and words.above:
        return words.above.format(bound=f"{number(scale.low)} {run.example}s")
    return words.sentence.format(num_updates=scale.num_updates)


def headline_without_value(run: RunSoFar) -> str:
    """The headline where nothing can be recommended: a likely bug is not missing evidence."""
    is_bug = any(reasons.words_of(reason).is_bug for reason in (run.noise_scale.reason, run.reason))
    return "Measurement needs a look" if is_bug else NOT_ENOUGH


def bound_hint(run: RunSoFar) -> str | None:
    """What a lower bound alone already says."""
    low, size = run.noise_scale.low, run.batch_size
    if low is None or size is None or low < size:
        return None
    return f"The batch of {batch(size)} is not too large."


def because(run: RunSoFar, word: DecisionWord, best: Interval, evidence: Evidence) -> str:
    """The reason of a decision in one sentence."""
    scale, size = run.noise_scale, run.batch_size
    if scale.value is None or size is None:
        return missing(run)
    said = compared(run)
    if word == "keep":
        return f"{said}: within 2 × of the best batch at this price."
    span = _span(best, run.example)
    if word != "insufficient_evidence":
        return f"{said}, and the whole interval of the best batch, {span}, lies on one side of it."
    if scale.state is State.TENTATIVE:
        return f"{said}, but that is tentative: {_what_resolves(scale)}."
    until = (
        ", on either side of the present one"
        if evidence.num_measurements
        else " until a sweep or a branch calibrates it"
    )
    return f"{said}, but the best batch may lie anywhere in {span}{until}."


def _what_resolves(scale: NoiseScaleEstimate) -> str:
    """What is missing; a window may look clear by itself, but what came before it decides too."""
    z, needed = scale.z or 0.0, scale.updates_needed
    if _waits_to_be_confirmed(scale):
        too_few = "and too few steps came before the window to confirm it"
        return f"z {z:.1f}, {too_few if z >= RESOLVED_Z else 'less clear than in the steps before'}"
    seen = f"z {z:.1f}" if z < RESOLVED_Z else f"z {z:.1f}, but less clear in the steps before"
    return f"{seen}; {f'a window of about {needed:,} steps' if needed else 'more steps'} would resolve it"


def _waits_to_be_confirmed(scale: NoiseScaleEstimate) -> bool:
    """Whether the window would be long enough, and only what came before it does not say so yet."""
    return scale.updates_needed is not None and scale.updates_needed <= scale.num_updates


def compared(run: RunSoFar) -> str:
    """The noise scale beside the batch, the larger of the two first."""
    noise_scale, size, example = run.noise_scale.value, run.batch_size, run.example
    if noise_scale is None or size is None:
        return missing(run)
    if noise_scale >= size:
        return f"The noise scale is {ratio(noise_scale / size)} the batch of {batch(size)} {example}s"
    return f"The batch of {batch(size)} {example}s is {ratio(size / noise_scale)} the noise scale"


def _span(interval: Interval, example: str) -> str:
    if interval.high == math.inf:
        return f"{number(interval.low)} {example}s or more"
    return f"{number(interval.low)} – {number(interval.high)} {example}s"


def banded(found: Banded) -> str:
    """A predicted number with its interval: 0.131 (0.08 – 0.72); without one where it is exact."""
    if number(found.low) == number(found.high):
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} – {number(found.high)})"


def headline(word: DecisionWord, to_batch: int, run: RunSoFar, best: float, evidence: Evidence) -> str:
    """The decision in a few words."""
    match word:
        case "increase":
            return f"Raise the batch to {to_batch:,}"
        case "decrease":
            return f"Lower the batch to {to_batch:,}"
        case "keep":
            return f"Keep {batch(run.batch_size or best)}"
        case _ if run.noise_scale.state is State.TENTATIVE or run.batch_size is None:
            return NOT_ENOUGH
        case _ if is_decayed(run):
            return "Not enough evidence: the learning rate has decayed"
    open_question = "not sure yet" if evidence.num_measurements else "not calibrated here"
    if max(best / run.batch_size, run.batch_size / best) <= 2:
        return f"Probably keep; {open_question}"
    return f"Probably {'raise' if best > run.batch_size else 'lower'}; {open_question}"


def effect(word: DecisionWord, predicted: Predicted, run: RunSoFar) -> str:
    """What following the advice would change, cost beside gain."""
    steps, examples = predicted.steps_factor, predicted.examples_factor
    verb = "Predicted" if word in ("increase", "decrease") else "The best guess would give"
    return f"{verb}: {_change(steps)} steps, {_change(examples)} {run.example}s to the same loss."


def _change(factor: Interval) -> str:
    return f"{_signed(factor.value)} ({_signed(factor.low)} to {_signed(factor.high)})"


def _signed(factor: float) -> str:
    if factor >= 2:
        return ratio(factor)
    share = round(100 * (factor - 1))
    return f"{'+' if share > 0 else '−' if share < 0 else '±'}{abs(share)} %"


def learning_rate_text(optimizer: str | None, rule: Rule) -> str:
    """How the learning rate was rescaled, and what it is good for."""
    name = optimizer or "unknown optimizer"
    if not rule.is_verified:
        return f"{name}: no verified rule; start a search here, keep as many steps of warm-up."
    return f"{name}, {rule.name}: the centre of a short search; keep as many steps of warm-up."


def warnings(run: RunSoFar, wish: Worth, evidence: Evidence) -> tuple[Caution, ...]:
    """What the reader must know before following the advice."""
    found = list(flags.cautions_before_advice(run.flags))
    if not evidence.num_measurements:
        found.append(Caution("uncalibrated", evidence.kappa.said))
    if family_of(run.optimizer) is Family.ADAM and _is_language(run):
        calibrated = f" {evidence.kappa.said}" if evidence.num_measurements else ""
        found.append(
            Caution("adam_language_model", f"Noise scale can under-read for Adam language models.{calibrated}")
        )
    if is_decayed(run):
        found.append(Caution("learning_rate_decayed", f"{DECAYED} {before_the_decay(run)}"))
    if not wish.is_stated:
        found.append(Caution("no_price", _NO_PRICE))
    return tuple(found)


def before_the_decay(run: RunSoFar) -> str:
    """Which step's advice to ask for instead."""
    step = last_informed_step(run)
    if step is None:
        return "Ask for the advice of a step before the decay (to_step)."
    return f"Ask for the advice of a step before the decay: to_step={step}."


def _is_language(run: RunSoFar) -> bool:
    return "token" in run.unit.lower() or "language" in (run.family or "").lower()


ENDED = (
    "This run ended before its noise scale was resolved: split each step of the next one into more micro-batches, or "
    "let it train for longer."
)


def next_step(word: DecisionWord, run: RunSoFar, evidence: Evidence) -> str:
    """The next cheapest thing that would make the answer surer."""
    scale = run.noise_scale
    first = _before_more_steps(run)
    if first is not None:
        return first
    if run.has_ended and scale.state is not State.RESOLVED:
        return ENDED
    window = window_needed(run)
    if window is not None:
        return f"Keep training: a window of {window:,} steps resolves it if |G|² stays, more micro-batches sooner."
    if scale.state is not State.RESOLVED:
        return "Keep training, and split each step into more micro-batches."
    if is_decayed(run):
        return before_the_decay(run)
    if word == "keep" and run.has_ended:
        return "Nothing to change for the next run like this one."
    if word == "keep":
        return "Nothing to change now; look again when the noise scale has doubled."
    if word == "insufficient_evidence" and evidence.num_measurements:
        return "Try half and twice the batch from a checkpoint: that narrows what is known of this run."
    if word == "insufficient_evidence":
        return "Try half and twice the batch from a checkpoint, or run a small sweep: that calibrates this task."
    return (
        "Confirm it with a short branch from a checkpoint: the same held-out loss, present batch against the new one."
    )


def of_the_plan(run: RunSoFar) -> str:
    """Whether the plan is long enough for such a window, as the end of a sentence; the window is a share of the run."""
    window = window_needed(run)
    if window is None or not run.planned_steps:
        return "."
    length = run_until_resolved(window, window_share=WINDOW_SHARE, shortest_window=MIN_UPDATES)
    if length <= run.planned_steps:
        return ", which the plan takes anyway, if |G|² stays as it is."
    whole = f"a window is 5 % of the run, so it takes a run of at least {number(length)} steps."
    return f", and the plan is too short for it: {whole}"


def window_needed(run: RunSoFar) -> int | None:
    """Steps of a window that would resolve it; None where something else comes first, or nobody can say.

    Args:
        run: As it stands.
    """
    scale = run.noise_scale
    if scale.reason is Reason.NO_SIGNAL_YET or _before_more_steps(run) is not None:
        return None
    return scale.updates_needed or None


def _before_more_steps(run: RunSoFar) -> str | None:
    """What to do before more steps help; None where they do."""
    scale = run.noise_scale
    bug = reasons.words_of_bit(run.reason)
    if bug.is_bug:
        return bug.next_step
    if run.batch_size is None:
        return reasons.OF_WINDOWS[Reason.NO_ESTIMATES].next_step
    if scale.state is State.TENTATIVE and _waits_to_be_confirmed(scale):
        return ENDED if run.has_ended else "Keep training: the steps to come confirm it or not."
    return reasons.words_of(scale.reason).next_step or None
