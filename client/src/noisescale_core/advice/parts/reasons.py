"""Why a noise scale has no value, and what makes one doubtful: each reason once, in the forms readers have room for."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.uncertainty import MIN_BLOCKS, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What one bit of a row or one reason of a window tells; a form that no reader asks for is empty.

    Attributes:
        short: In a cell of a table, without a full stop.
        sentence: On a card, as the reason why nothing is recommended; `{num_updates}` stands for the measured steps.
        above: The same where a lower bound is known; `{bound}` stands for it.
        so_far: After "not resolved yet:", true of this process so far.
        warning: Once in the job's log, with the way out.
        notice: With every answer about the run, with the way out.
        next_step: On a card, what to do next.
        is_bug: It is likely a bug, and not missing evidence.
    """

    short: str = ""
    sentence: str = ""
    above: str = ""
    so_far: str = ""
    warning: str = ""
    notice: str = ""
    next_step: str = ""
    is_bug: bool = False


OF_FLAGS: Final[Mapping[Flags, Words]] = MappingProxyType(
    {
        Flags.NO_BACKWARD: Words(
            short="no backward was seen between optimizer steps",
            sentence="No backward pass was seen between optimizer steps.",
            so_far="no step with a backward before log_gradients() so far",
            warning="no backward since the last optimizer.step(): call log_gradients() before optimizer.step()",
        ),
        Flags.UNMATCHED_GRADIENT: Words(
            short="gradients were clipped, unscaled or averaged before log_gradients(): log first",
            sentence="The gradients were clipped, unscaled or averaged before they were logged.",
            so_far="no step whose gradient is the sum of its backward passes so far, the log says more",
            warning=(
                "the gradients are not the sum of the step's backward passes, so there is no estimate: call "
                "log_gradients() right after the last backward, before gradients are clipped, unscaled, averaged or "
                "cleared; with a GradScaler say watch(..., scaler=scaler), then it may come after unscale_(), too"
            ),
        ),
        Flags.NONFINITE_GRADIENT: Words(
            short="the gradients are not finite",
            sentence="The gradients are not finite.",
            so_far="no step with a finite gradient so far",
        ),
        Flags.DUPLICATED_SMALL_BATCHES: Words(
            short="all small batches have the same gradient: the same examples, or no noise",
            sentence="All small batches of a step have the same gradient: the same examples in each, or no noise.",
            so_far="no step whose small batches differ so far",
            warning=(
                "all small batches of a step have the same gradient, so there is no noise to measure: either each "
                "holds the same examples, then give every rank and micro-batch its own (DistributedSampler, another "
                "seed), or all examples are alike, and any batch size gives the same step"
            ),
            notice=(
                "All small batches of a step have the same gradient: either each holds the same examples, then give "
                "each rank its own sampler or seed and each micro-batch its own examples, or all examples are alike."
            ),
            next_step="Give each rank its own sampler or seed, and each micro-batch its own examples.",
            is_bug=True,
        ),
        Flags.ONE_SMALL_BATCH: Words(
            short="one backward a step: accumulate gradients, use more ranks or per-example norms",
            sentence="Each step has one small batch, and one alone cannot separate signal from noise.",
            so_far="no step with two small batches so far",
            warning=(
                "one backward a step gives no noise scale, and this model's examples cannot be told apart by "
                "themselves: split the batch into micro-batches and accumulate their gradients, for example 8 backward "
                "passes of an eighth of the batch each; or pass watch() split=8, or small_batches='per_example' for "
                "the layers that allow it; or measure norms yourself and call log_norms(). Loss, learning rate and "
                "batch size are recorded all the same"
            ),
        ),
        Flags.BATCH_SIZE_UNKNOWN: Words(
            short="the batch size is unknown: pass batch_size",
            sentence="The batch size is unknown: it was neither given nor readable from the model's input.",
            so_far="no step of known size so far: pass batch_size= to log_gradients()",
            warning=(
                "the model's input does not tell the batch size: pass batch_size= to log_gradients(); of a compiled "
                "model watch what torch.compile() has returned, or call model.compile() before watch()"
            ),
        ),
        Flags.HETEROGENEOUS_RANKS: Words(
            warning=(
                "the gradients of the ranks differ by more than their micro-batches explain: the ranks see different "
                "data, and the noise between them is overstated; shuffle over all ranks (DistributedSampler with "
                "set_epoch)"
            ),
            notice=(
                "Ranks see different data, so the noise scale is overstated: shuffle the data over all ranks, or "
                "measure the micro-batches within each rank."
            ),
        ),
        Flags.REPEATED_RANKS: Words(
            warning=(
                "the gradients of the ranks differ by less than their micro-batches explain: ranks see the same data, "
                "or some of it, so the step has fewer examples than it counts and the noise is understated; give each "
                "rank its own examples (DistributedSampler, another seed)"
            ),
            notice=(
                "Ranks see the same data, or some of it, so the batch has fewer examples than it counts and the noise "
                "scale is understated: give each rank its own sampler or seed."
            ),
            next_step="Give each rank its own sampler or seed: ranks see the same data.",
        ),
        Flags.DIFFERENT_SMALL_BATCHES: Words(
            warning=(
                "the small batches of a step differ by their place in it beyond chance: they are different terms of "
                "one loss, such as a discriminator's real and generated half, sorted data, or the same examples at "
                "each step, so tr Σ is overstated and |G|² understated; put passes that belong together into `with "
                "run.micro_batch():` and accumulate several of those, or shuffle the data"
            ),
            notice=(
                "Small batches differ by their place in the step, so the noise scale is overstated: put passes that "
                "are terms of one loss into one run.micro_batch(), or shuffle the data."
            ),
            next_step="Put passes that are terms of one loss into one run.micro_batch(), or shuffle the data.",
        ),
        Flags.DEPENDENT_EXAMPLES: Words(
            warning=(
                "the examples of a batch depend on each other: tr Σ is too {size} by a factor of about {factor}, by "
                "how far neighbouring steps' gradients are apart. It is so where examples are mixed (mixup), compared "
                "(contrastive losses) or share data; accumulate micro-batches, 8 of an eighth of the batch for "
                "example, that are each drawn, mixed and compared by themselves"
            ),
            notice=(
                "Examples of a batch depend on each other (mixup, contrastive losses, shared data), so the noise scale "
                "is off: accumulate micro-batches that are each drawn, mixed and compared by themselves."
            ),
        ),
        Flags.WEIGHTING_MISMATCH: Words(
            warning=(
                "micro-batches of different sizes are averaged with equal weight: this gradient is not the mean over "
                "all examples; divide each loss by the step's number of examples instead of averaging"
            ),
            notice=(
                "Micro-batches of unequal sizes are averaged with equal weight, so the gradient is not the mean over "
                "examples: divide each loss by the examples of the whole step instead."
            ),
        ),
        Flags.COUPLED_EXAMPLES: Words(
            notice=(
                "BatchNorm in training mode couples the examples of a micro-batch, so the noise scale holds for this "
                "micro-batch size alone: compare only runs with the same one, or use GroupNorm or LayerNorm."
            ),
        ),
        Flags.LAYER_NORM_PROXY: Words(
            notice=(
                "The noise scale is estimated from the norm layers alone: confirm it with micro-batches or per-example "
                "norms before acting on it."
            ),
        ),
        Flags.SMALLER_STEP: Words(
            warning=(
                "a step of {size} examples among steps of {usual} is left out of the noise scale, which it would blur: "
                "such as the rest of an epoch, which drop_last=True in the DataLoader avoids; a batch that stays "
                "smaller is measured again after 8 steps"
            ),
            notice=(
                "Steps with far fewer examples than the others, such as the rest of an epoch, are left out of the "
                "noise scale: drop_last=True in the DataLoader makes all steps alike."
            ),
        ),
        Flags.COMPRESSED_GRADIENT: Words(
            notice=(
                "Ranks exchange compressed gradients, whose error counts as noise or as signal: measure some steps "
                "without the compression to see how much it matters."
            ),
        ),
        Flags.PARTIAL_GRADIENTS: Words(
            notice=(
                "Some parameters had a gradient in only some of the small batches, and a missing one counts as zero: "
                "that is right for experts that no example reached; measure branches that are switched off in a run of "
                "their own."
            ),
        ),
    }
)
"""Bits that say something; of those without an estimate the nearest cause first, of the others the gravest."""

_NO_BOUND: Final = "The gradient signal cannot be told from noise yet; no bound can be given."
_UNSURE: Final = "The run has too few measured steps to be sure that there is a gradient."
_NO_UPPER_BOUND: Final = "The noise scale is above {bound}; no upper bound can be given."

OF_WINDOWS: Final[Mapping[Reason, Words]] = MappingProxyType(
    {
        Reason.TOO_FEW_UPDATES: Words(
            short="too few updates so far",
            sentence=f"Only {{num_updates:,}} measured steps so far; the first estimate takes {MIN_BLOCKS}.",
            so_far=f"{{num_updates}} of {MIN_BLOCKS} updates",
        ),
        Reason.INTERVAL_UNBOUNDED: Words(short="no upper bound yet", sentence=_NO_BOUND, above=_NO_UPPER_BOUND),
        Reason.GRAD_SQ_NORM_NOT_POSITIVE: Words(
            short="the signal |G|² is not above zero yet",
            sentence=_NO_BOUND,
            above=_NO_UPPER_BOUND,
            so_far="the signal |G|² is not above zero",
        ),
        Reason.TRACE_COV_NOT_POSITIVE: Words(
            short="tr Σ is not positive: ranks may see the same data",
            sentence="tr Σ is not positive: small batches may hold the same data, or be measured after averaging.",
            so_far="tr Σ is not positive: small batches may hold the same data",
            next_step="Check that micro-batches hold different data and that gradients are read before averaging.",
            is_bug=True,
        ),
        Reason.TRACE_COV_OF_ROUNDING: Words(
            short="tr Σ is no larger than rounding: the small batches are equal",
            sentence="tr Σ is no larger than rounding: small batches hold the same examples, or there is no noise.",
            so_far="tr Σ is no larger than rounding: small batches hold the same examples, or there is no noise",
            next_step="Check that micro-batches hold different examples, each drawn at random.",
        ),
        Reason.NO_SIGNAL_YET: Words(
            short="too few measured steps to be sure of a gradient",
            sentence=_UNSURE,
            above=f"{_UNSURE} The noise scale is above {{bound}}.",
            so_far="too few measured steps to be sure of a gradient",
        ),
        Reason.NO_ESTIMATES: Words(
            short="no measurements yet",
            sentence="No step has an estimate of the noise scale yet.",
            next_step="Accumulate gradients over 8 or more micro-batches, or use several ranks, and pass batch_size=.",
        ),
    }
)
"""Why a window of estimates is not resolved."""


def code_of(flag: Flags) -> str:
    """The name of a bit as in docs/wire.md."""
    return (flag.name or "").lower()


_OF_BITS: Final = {code_of(flag): words for flag, words in OF_FLAGS.items()}
_BY_CODE: Final = _OF_BITS | {reason.value: words for reason, words in OF_WINDOWS.items()}
_NO_WORDS: Final = Words()


def words_of(reason: str | None) -> Words:
    """All that is said of a reason; nothing where there is none, or a newer version stored it.

    Args:
        reason: A code of docs/rest.md, "An estimate".
    """
    return _BY_CODE.get(reason or "", _NO_WORDS)


def words_of_bit(reason: str | None) -> Words:
    """The same of a bit of the rows alone; nothing for a reason of a window.

    Args:
        reason: A code of docs/rest.md, "An estimate".
    """
    return _OF_BITS.get(reason or "", _NO_WORDS)


def short(reason: str | None) -> str | None:
    """A reason in a cell of a table; None where there is none.

    Args:
        reason: A code of docs/rest.md, "An estimate"; one that a newer version stored is said by its name.
    """
    return None if reason is None else words_of(reason).short or reason.replace("_", " ")
