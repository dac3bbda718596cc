"""Why a noise scale has no number yet, as a clause for people: what is true of this process and this kind."""

from noisescale.notices.readable import readable
from noisescale_core.advice.parts.reasons import OF_FLAGS
from noisescale_core.estimators.dual_norm_noise_scale import MIN_STEPS, WIDEST_BRACKET, Bracket
from noisescale_core.estimators.flags import Flags

MIN_SPECTRAL_SMALL_BATCHES = 4
"""Small batches that kind `spectral` needs to estimate a deviation."""


def why_no_estimate(flags: int | None, *, is_silent: bool) -> str:
    """Why no step has given an estimate.

    Args:
        flags: Of the newest step; None before the first.
        is_silent: Another rank of the job sends.
    """
    if flags is None:
        return "rank 0 has the numbers: ask there" if is_silent else "no step was measured so far"
    found = (told.so_far for flag, told in OF_FLAGS.items() if told.so_far and flags & flag)
    return next(found, OF_FLAGS[Flags.ONE_SMALL_BATCH].so_far)


def why_no_terms(kind: str, *, num_steps: int, num_small_batches: int, bracket: Bracket | None, examples: str) -> str:
    """Why no step has given terms of a further kind, though it had an estimate of kind `simple`.

    Args:
        kind: Of noise scale.
        num_steps: Measured steps so far.
        num_small_batches: Of the newest step.
        bracket: Between which values the noise scale lies; None where that is not known.
        examples: Word for several of them.
    """
    if kind == "adam":
        return "kind adam begins after 5 optimizer steps of every parameter that has a gradient"
    if kind == "hessian":
        return "no log_hessian() with finite products so far"
    if kind == "spectral" and num_small_batches < MIN_SPECTRAL_SMALL_BATCHES:
        return f"kind spectral needs {MIN_SPECTRAL_SMALL_BATCHES} small batches a step, got {num_small_batches}"
    if bracket is not None:
        return _bounds(bracket, examples)
    if num_steps <= MIN_STEPS:
        return f"kind {kind} begins after {MIN_STEPS} measured steps, {num_steps} so far"
    return f"no step with terms of kind {kind} so far"


def _bounds(bracket: Bracket, examples: str) -> str:
    """What is known where the bounds lie too far apart for a value, and what would bring them together."""
    if bracket.high is None:
        return f"> {readable(bracket.low)} {examples}; a value needs a step of several times as many {examples}"
    # In the model of Gaussian coordinates U / L - 1 falls as 1 / batch (`docs/kinds.md`).
    spread = (bracket.high / bracket.low) ** 0.5
    known = f"between {readable(bracket.low)} and {readable(bracket.high)} {examples}"
    if spread <= WIDEST_BRACKET:
        return f"{known}; values begin with the next steps"
    factor = readable((spread - 1) / (WIDEST_BRACKET - 1))
    return f"{known}; a value needs a step of about {factor} times as many {examples}"
