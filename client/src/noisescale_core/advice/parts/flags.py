"""Which of a row's bits a reader is told of, and with what answer."""

from typing import Final

from noisescale_core.advice.parts.parts import Caution
from noisescale_core.advice.parts.reasons import OF_FLAGS, code_of
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

BEFORE_ADVICE: Final = (
    Flags.DIFFERENT_SMALL_BATCHES,
    Flags.REPEATED_RANKS,
    Flags.HETEROGENEOUS_RANKS,
    Flags.DEPENDENT_EXAMPLES,
    Flags.WEIGHTING_MISMATCH,
    Flags.COUPLED_EXAMPLES,
    Flags.LAYER_NORM_PROXY,
)
"""Those that change what a recommendation is worth."""

_WITHOUT_ESTIMATE: Final = [(int(flag), code_of(flag)) for flag in WITHOUT_ESTIMATE]
_NOTICED: Final = [(int(flag), Caution(code_of(flag), told.notice)) for flag, told in OF_FLAGS.items() if told.notice]
"""By plain numbers: a page of runs asks a thousand times, and enumerations take a hundred times as long."""

WRONG: Final = (Flags.DIFFERENT_SMALL_BATCHES, Flags.REPEATED_RANKS)
"""Those under which the noise scale is another one's by a factor that nobody knows: nothing is advised."""


def reason_without_estimate(flags: int) -> str | None:
    """Why rows with these bits hold no estimate; None where the bits do not say."""
    return next((code for bit, code in _WITHOUT_ESTIMATE if flags & bit), None) if flags else None


def notices(flags: int) -> tuple[Caution, ...]:
    """What these bits tell a reader."""
    return tuple(caution for bit, caution in _NOTICED if flags & bit) if flags else ()


def cautions_before_advice(flags: int) -> tuple[Caution, ...]:
    """Those notices without which a recommendation would be taken for more than it is."""
    return tuple(Caution(code_of(flag), OF_FLAGS[flag].notice) for flag in BEFORE_ADVICE if flags & flag)


def next_step_where_wrong(flags: int) -> str | None:
    """What to do before the measurement is a basis for advice; None where it is one."""
    return next((OF_FLAGS[flag].next_step for flag in WRONG if flags & flag), None)


def cautions_where_wrong(flags: int) -> tuple[Caution, ...]:
    """Those notices under which the measurement is no basis for advice."""
    return tuple(Caution(code_of(flag), OF_FLAGS[flag].notice) for flag in WRONG if flags & flag)
