"""What a reader is told about the bits that rows carry."""

from types import MappingProxyType
from typing import Final

from noisescale_core.advice.parts import Caution
from noisescale_core.estimators.flags import Flags

WITHOUT_ESTIMATE: Final = (
    Flags.DUPLICATED_SMALL_BATCHES,
    Flags.ONE_SMALL_BATCH,
    Flags.BATCH_SIZE_UNKNOWN,
    Flags.NO_BACKWARD,
    Flags.UNMATCHED_GRADIENT,
    Flags.NONFINITE_GRADIENT,
)
"""Bits of rows without an estimate, the likeliest reason for it first."""

NOTICES: Final = MappingProxyType(
    {
        Flags.DUPLICATED_SMALL_BATCHES: (
            "All small batches of a step have the same gradient, which is a bug in the data loading: give each rank its"
            " own sampler or seed, and each micro-batch its own examples."
        ),
        Flags.HETEROGENEOUS_RANKS: (
            "Ranks see different data, so the noise scale is overstated: shuffle the data over all ranks, or measure"
            " the micro-batches within each rank."
        ),
        Flags.WEIGHTING_MISMATCH: (
            "Micro-batches of unequal sizes are averaged with equal weight, so the gradient is not the mean over"
            " examples: divide each loss by the examples of the whole step instead."
        ),
        Flags.COUPLED_EXAMPLES: (
            "BatchNorm in training mode couples the examples of a micro-batch, so the noise scale holds for this"
            " micro-batch size alone: compare only runs with the same one, or use GroupNorm or LayerNorm."
        ),
        Flags.LAYER_NORM_PROXY: (
            "The noise scale is estimated from the norm layers alone: confirm it with micro-batches or per-example"
            " norms before acting on it."
        ),
        Flags.COMPRESSED_GRADIENT: (
            "Ranks exchange compressed gradients, whose error counts as noise or as signal: measure some steps without"
            " the compression to see how much it matters."
        ),
        Flags.PARTIAL_GRADIENTS: (
            "Some parameters had a gradient in only some of the small batches, and a missing one counts as zero: that"
            " is right for experts that no example reached; measure branches that are switched off in a run of their"
            " own."
        ),
    }
)
"""What a reader should know of the latest window and what to do about it, the gravest first."""

BEFORE_ADVICE: Final = (
    Flags.HETEROGENEOUS_RANKS,
    Flags.WEIGHTING_MISMATCH,
    Flags.COUPLED_EXAMPLES,
    Flags.LAYER_NORM_PROXY,
)
"""Those that change what a recommendation is worth."""


def code_of(flag: Flags) -> str:
    """The name of a bit as in docs/wire.md."""
    return (flag.name or "").lower()


def reason_without_estimate(flags: int) -> str | None:
    """Why rows with these bits hold no estimate; None where the bits do not say."""
    return next((code_of(flag) for flag in WITHOUT_ESTIMATE if flags & flag), None)


def notices(flags: int) -> tuple[Caution, ...]:
    """What these bits tell a reader."""
    return tuple(Caution(code_of(flag), text) for flag, text in NOTICES.items() if flags & flag)


def cautions_before_advice(flags: int) -> tuple[Caution, ...]:
    """Those notices without which a recommendation would be taken for more than it is."""
    return tuple(Caution(code_of(flag), NOTICES[flag]) for flag in BEFORE_ADVICE if flags & flag)
