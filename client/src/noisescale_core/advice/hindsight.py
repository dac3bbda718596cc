"""What an advice was worth, once a sweep has told the critical batch: did its odds come true?"""

from dataclasses import dataclass

from noisescale_core.advice.decision import KEEP_REGRET, word_of
from noisescale_core.advice.evidence.critical_belief import Critical
from noisescale_core.advice.limited import round_batch
from noisescale_core.advice.limits.pricing import price
from noisescale_core.advice.parts.parts import DecisionWord
from noisescale_core.theory.expected_cost import stake
from noisescale_core.theory.prices import worth_examples
from noisescale_core.theory.trade_off import regret_at_price


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What was said of a run at one price, and what would have come of it; costs are those of the same loss.

    Attributes:
        word: What was said.
        probability: That the recommended batch is cheaper than the present one, as it was said.
        is_cheaper: Whether it is.
        is_change: The two differ.
        is_right: Whether the word was: of a change that the batch is cheaper, of `keep` that the present batch costs at
            most an eighth more than the best one; None where it says neither.
        regret: Extra cost of the recommended batch over the best one, as a share.
        kept: The same of the present batch.
        control: The same of a batch as large as the price, which knows nothing of the run.
    """

    word: DecisionWord
    probability: float
    is_cheaper: bool
    is_change: bool
    is_right: bool | None
    regret: float
    kept: float
    control: float


def hindsight(known: Critical, *, batch_size: float, critical_batch: float, price_ratio: float) -> Hindsight | None:
    """The advice of then beside what is known now; None where nothing could be said.

    Args:
        known: Of B_crit at the time.
        batch_size: The present batch then, in examples.
        critical_batch: B_crit as it is known now, in examples.
        price_ratio: What a step is worth, in critical batches.
    """
    rate = worth_examples(price_ratio * critical_batch)
    priced = price(known, rate)
    if priced is None:
        return None
    to_batch = round_batch(priced.best.value)
    found = stake(priced.belief, rate, now=batch_size, then=to_batch)
    word = word_of(found, now=batch_size, then=to_batch)
    regret, kept, control = (
        regret_at_price(batch=one, critical_batch=critical_batch, examples_per_step=price_ratio * critical_batch)
        for one in (to_batch, batch_size, price_ratio * critical_batch)
    )
    return Hindsight(
        word=word,
        probability=found.probability,
        is_cheaper=regret < kept,
        is_change=to_batch != batch_size,
        is_right=_is_right(word, is_cheaper=regret < kept, kept=kept),
        regret=regret,
        kept=kept,
        control=control,
    )


def _is_right(word: DecisionWord, *, is_cheaper: bool, kept: float) -> bool | None:
    match word:
        case "keep":
            return kept <= KEEP_REGRET
        case "keep_for_now" | "insufficient_evidence":
            return None
    return is_cheaper
