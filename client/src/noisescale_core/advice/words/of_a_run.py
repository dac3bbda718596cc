"""The sentences of a recommendation: plain, present tense, the reader's units, cost said with gain."""

import math
from typing import TYPE_CHECKING

from noisescale_core.advice.evidence.critical_belief import law_of
from noisescale_core.advice.evidence.evidence import Evidence, Measured
from noisescale_core.advice.parts import flags, reasons
from noisescale_core.advice.parts.known_noise_scale import is_decayed, last_informed_step
from noisescale_core.advice.parts.numbers import chance, duration, more, number, percent, ratio, rough
from noisescale_core.advice.parts.parts import Caution, DecisionWord, Interval, Predicted, RunSetting, RunSoFar
from noisescale_core.advice.words import of_language_models
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, Reason, State
from noisescale_core.estimators.windows import run_until_resolved
from noisescale_core.theory.expected_cost import Stake
from noisescale_core.theory.learning_rate import Rule, RuleFamily, averages_gradients, family_of

if TYPE_CHECKING:
    from noisescale_core.advice.limits.predictions import Banded
    from noisescale_core.advice.limits.pricing import Priced


WINDOW_SHARE, MIN_UPDATES = 0.05, 16
"""Of the latest window: its share of the run, and its least updates."""

LOOK_AGAIN = 1.5
"""Times the steps so far: a look that soon after the last one hardly says more."""

NOT_ENOUGH = "Not enough evidence yet"
"""The headline where nothing can be recommended, of a run and of a task."""

_SAY_A_PRICE = (
    "To change it, say how many examples a saved step is worth (examples_per_step), what an hour sooner is worth "
    "(usd_per_hour_sooner), or which of the two you prefer (preference)."
)
DECAYED = (
    "The learning rate is below a tenth of its peak, and the noise scale rises as it falls: what is measured now is "
    "mostly the effect of the decay."
)


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
    wrong = flags.cautions_where_wrong(run.flags)
    if wrong:
        return wrong[0].text
    if is_decayed(run) and run.belief is None:
        return DECAYED
    words, bug = reasons.words_of(scale.reason), reasons.words_of_bit(run.reason)
    if bug.is_bug:
        return bug.sentence
    if scale.reason is Reason.NO_ESTIMATES:
        return reasons.words_of(run.reason).sentence or words.sentence
    if run.batch_size is None:
        return reasons.OF_FLAGS[Flags.BATCH_SIZE_UNKNOWN].sentence
    if scale.value is not None:
        return (
            "This noise scale is far outside what any run has had, so no batch follows from it: check the measurement."
        )
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
    is_wrong = bool(flags.cautions_where_wrong(run.flags)) or is_decayed(run)
    if low is None or size is None or low < size or is_wrong:
        return None
    return f"The batch of {batch(size)} is not too large."


def because(run: RunSoFar, word: DecisionWord, priced: "Priced", found: Stake, to_batch: float) -> str:
    """The reason of a decision: how the noise scale compares, what B_crit is, and how the odds stand."""
    critical = priced.critical_batch
    law = "" if _is_measured(run) else "by published language models of as many tokens "
    known = f"{law}the critical batch is {_spread(critical.value, critical.low, critical.high, run.example)}"
    return f"{compared(run).removesuffix('.')}; {known}. {_at_stake(run, word, found, to_batch)}"


def _is_measured(run: RunSoFar) -> bool:
    return run.belief is not None or run.noise_scale.value is not None


def _at_stake(run: RunSoFar, word: DecisionWord, found: Stake, to_batch: float) -> str:
    now = batch(run.batch_size or to_batch)
    if word == "keep":
        return f"At this price {now} is expected to cost {more(found.present_regret)} than the best batch would."
    if to_batch == run.batch_size:
        return (
            f"Of all batches {now} costs least on average; it may cost {more(found.present_regret)} than the best one."
        )
    odds = f"{batch(to_batch)} is cheaper with a probability of {chance(found.probability)}"
    if word == "keep_for_now":
        may_cost = f"{now} may cost {more(found.present_regret)} than the best batch"
        return f"{may_cost}, but none is known to be better: {odds}."
    worst = f"saves {percent(-found.worst_case)}" if found.worst_case < 0 else f"costs {more(found.worst_case)}"
    return f"{odds}: it saves {percent(found.saving)} of the cost on average, and in the worst case of 20 it {worst}."


def in_short(word: DecisionWord, to_batch: int, run: RunSoFar, found: Stake, priced: "Priced") -> str:
    """The reason in one sentence without a term of the papers.

    A batch below B_crit that is too large, or one above it that is too small, is so by the price of a step alone: a
    reader who sees the noise scale above their batch is told that.

    Args:
        word: What to do.
        to_batch: The batch to change to, in examples.
        run: As it stands, with a batch.
        found: What the change puts at stake.
        priced: B_crit, and whether a step has a price or is weighed against examples.
    """
    now = run.batch_size or float(to_batch)
    past_critical = math.log(now / priced.critical.value) if priced.rate.examples_per_step is not None else 0.0
    if word in ("increase", "probably_increase"):
        far = f"{_times(to_batch / now)} too small."
        return _looks(now, far, "Steps are costly here" if past_critical > 0 else "")
    if word in ("decrease", "probably_decrease"):
        far = f"{_times(now / to_batch)} too large."
        return _looks(now, far, "Steps are cheap here" if past_critical < 0 else "")
    regret = found.present_regret
    gain = percent(regret / (1 + regret) if math.isfinite(regret) else 1.0)
    if word == "keep":
        return f"Another batch would save {gain} or less."
    return f"Another batch may save up to {gain}, but none is known to be better."


def _looks(now: float, far: str, price: str) -> str:
    # as short as it can be: the card has one line for it
    return f"{price}: {batch(now)} looks {far}" if price else f"{batch(now)} looks about {far}"


def _times(factor: float) -> str:
    # two digits, and never an exponent
    return f"{number(float(f'{factor:.2g}'))} ×"


def _spread(value: float, low: float, high: float, example: str) -> str:
    said = (rough(one, low, high) for one in (value, low, high))
    return "{} {example}s ({} – {})".format(*said, example=example)


BY_OPTIMIZER = {True: "by momentum or Adam", False: "by plain SGD", None: "by any optimizer"}
"""By whether it averages gradients over steps."""


def assumes(run: RunSoFar, evidence: Evidence) -> str:
    """What the odds rest on besides the measurement."""
    if evidence.num_measurements:
        return evidence.kappa.said
    if not _is_measured(run):
        return "What published language models of as many tokens had: nothing is measured yet."
    others = f"κ as in other tasks {BY_OPTIMIZER[averages_gradients(run.optimizer, run.momentum)]}"
    if run.progress is None:
        return f"{others} with a quarter of the plan done: nobody has said a plan (planned_steps)."
    return f"{others} with {percent(run.progress)} of the plan done: this task has no sweep or branch yet."


def _waits_to_be_confirmed(scale: NoiseScaleEstimate) -> bool:
    """Whether the window would be long enough, and only what came before it does not say so yet."""
    return scale.updates_needed is not None and scale.updates_needed <= scale.num_updates


def compared(run: RunSoFar) -> str:
    """The noise scale beside the batch, the larger of the two first."""
    noise_scale, size, example = run.noise_scale.value, run.batch_size, run.example
    if run.belief is not None and (noise_scale is None or is_decayed(run)):
        middle, low, high = (run.belief.quantile(share) for share in (0.5, 0.025, 0.975))
        if not run.belief.is_bounded:
            return f"By all steps so far the noise scale is above {number(float(f'{low:.2g}'))} {example}s"
        return f"By all steps so far the noise scale is {_spread(middle, low, high, example)}"
    if noise_scale is None or size is None:
        return missing(run)
    if noise_scale >= size:
        return f"The noise scale is {ratio(noise_scale / size)} the batch of {batch(size)} {example}s"
    return f"The batch of {batch(size)} {example}s is {ratio(size / noise_scale)} the noise scale"


def banded(found: "Banded") -> str:
    """A predicted number with its interval: 0.131 (0.08 – 0.72); without one where it is exact."""
    if number(found.low) == number(found.high):
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} – {number(found.high)})"


def headline(word: DecisionWord, to_batch: int, run: RunSoFar) -> str:
    """The decision in a few words."""
    now = batch(run.batch_size or to_batch)
    match word:
        case "increase":
            return f"Raise the batch to {to_batch:,}"
        case "decrease":
            return f"Lower the batch to {to_batch:,}"
        case "keep":
            return f"Keep {now}"
        case "probably_increase":
            return f"Try a larger batch: {to_batch:,}"
        case "probably_decrease":
            return f"Try a smaller batch: {to_batch:,}"
        case "keep_for_now":
            return f"Keep {now} for now"
    return NOT_ENOUGH


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
        return f"{name}: no verified rule; start a search here, keep the same number of warm-up steps."
    return f"{name}, {rule.name}: the centre of a short search; keep the same number of warm-up steps."


def warnings(run: RunSetting, evidence: Evidence) -> tuple[Caution, ...]:
    """What the reader must know before following the advice."""
    found = list(flags.cautions_before_advice(run.flags)) if isinstance(run, RunSoFar) else []
    if not evidence.num_measurements:
        found.append(Caution("uncalibrated", evidence.kappa.said))
    if family_of(run.optimizer) is RuleFamily.ADAM and _is_language(run):
        calibrated = f" {evidence.kappa.said}" if evidence.num_measurements else ""
        found.append(
            Caution(
                "adam_language_model",
                f"For language models trained with Adam the noise scale is often too low.{calibrated}",
            )
        )
    if isinstance(evidence, Measured) and (law := law_of(run)) is not None:
        found.append(Caution("law_of_language_models", of_language_models.taken_into_account(law.tokens)))
    if is_decayed(run):
        found.append(Caution("learning_rate_decayed", f"{DECAYED} {before_the_decay(run)}"))
    return tuple(found)


def price_is_assumed(said: str) -> Caution:
    """That nobody has said what a step is worth, and what is taken for it."""
    return Caution("no_price", f"{said[0].upper()}{said[1:]}. {_SAY_A_PRICE}")


def before_the_decay(run: RunSetting) -> str:
    """Which step's advice to ask for instead."""
    step = last_informed_step(run)
    if step is None:
        return "Ask for the advice of a step before the decay (to_step)."
    return f"Ask for the advice of a step before the decay: to_step={step}."


def _is_language(run: RunSetting) -> bool:
    return "token" in run.unit.lower() or "language" in (run.family or "").lower()


ENDED = (
    "This run ended before its noise scale was resolved: split each step of the next one into more micro-batches, or "
    "let it train for longer."
)


def next_step(word: DecisionWord, run: RunSoFar, evidence: Evidence, found: Stake | None = None) -> str:
    """The next cheapest thing that would make the answer surer."""
    match word:
        case "insufficient_evidence":
            return _to_measure(run)
        case "keep" if run.has_ended:
            return "Nothing to change for the next run like this one."
        case "keep":
            return "Nothing to change now; look again when the noise scale has doubled."
        case "probably_increase" | "probably_decrease":
            return _try_first(word, run)
        case "keep_for_now":
            return _look_again(run, evidence, found)
    return (
        "Confirm it with a short branch from a checkpoint: the same held-out loss, present batch against the new one."
    )


def _to_measure(run: RunSoFar) -> str:
    first = _before_more_steps(run)
    if first is not None:
        return first
    if is_decayed(run) and run.belief is None:
        return before_the_decay(run)
    if run.has_ended:
        return ENDED
    window = window_needed(run)
    if window is not None:
        return f"Keep training: a window of {window:,} steps resolves it if |G|² stays, more micro-batches sooner."
    return "Keep training, and split each step into more micro-batches."


def _later(run: RunSoFar) -> str:
    return number(math.ceil(LOOK_AGAIN * max(run.steps_done, 1)))


def _try_first(word: DecisionWord, run: RunSoFar) -> str:
    factor = "twice" if word == "probably_increase" else "half"
    if run.has_ended:
        return f"Try {factor} the batch in the next run."
    return f"Try {factor} the batch first, and look again at step {_later(run)}."


def _look_again(run: RunSoFar, evidence: Evidence, found: Stake | None) -> str:
    gain = None if found is None else found.regret / (1 + found.regret)
    worth = "" if gain is None else f": knowing the critical batch would save {percent(gain)} on average"
    sweep = "" if evidence.num_measurements else ", or run a small sweep"
    trial = f"try half and twice the batch from a checkpoint{sweep}{worth}."
    if run.has_ended:
        return f"{trial[0].upper()}{trial[1:]}"
    return f"Look again at step {_later(run)}, or {trial}"


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
    wrong = flags.next_step_where_wrong(run.flags)
    if wrong is not None:
        return wrong
    bug = reasons.words_of_bit(run.reason)
    if bug.is_bug:
        return bug.next_step
    if run.batch_size is None:
        return reasons.OF_WINDOWS[Reason.NO_ESTIMATES].next_step
    if scale.state is State.TENTATIVE and _waits_to_be_confirmed(scale):
        return ENDED if run.has_ended else "Keep training: the steps to come confirm it or not."
    return reasons.words_of(scale.reason).next_step or None
