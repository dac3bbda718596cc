"""Sentences that say once what a step means for its estimate, and the way out."""

import logging
from typing import TYPE_CHECKING, Any

from noisescale.guard import Notices
from noisescale.notices.readable import readable
from noisescale.rows.updates import Update
from noisescale_core.advice.parts.reasons import OF_FLAGS, code_of
from noisescale_core.estimators.dual_norm_noise_scale import MIN_STEPS, WIDEST_BRACKET, Bracket
from noisescale_core.estimators.flags import Flags

if TYPE_CHECKING:
    from noisescale.capture.duty_cycle import DutyCycle
    from noisescale.capture.sums.step_norms import StepNorms

KINDS = ("adam", "sign", "spectral")

TAKES_EXAMPLES = (
    "one backward a step: from the next step on each example is a small batch (per-example norms, within 5 % of the "
    "training's time), which must not depend on each other (mixup, contrastive losses): accumulate micro-batches "
    "there, and for less work, or pass small_batches='micro_batches' for none"
)
UNEQUAL = (
    "micro-batches differ in size, and are taken as weighted by their sizes, which makes the gradient the mean over "
    "all examples; if the loop averages them with equal weight (each loss divided by their number), say "
    "watch(..., loss=Loss(weighting='equal'))"
)

SUMMED = (
    "the loss that was logged is a sum over examples: if backward() starts from it, tr Σ and |G|² are too large by the "
    "square of the step's examples (their ratio is right), so say watch(..., loss=Loss(reduction='sum'))"
)

WEIGHTED = (
    "the loss is weighted by class and divided by the sum of the weights, which examples of one backward share: tr Σ "
    "and the noise scale are off, the more the smaller the noise scale is; accumulate micro-batches, 8 of an eighth of "
    "the batch for example, which are right"
)

MEAN, SUM = 1, 2
"""What PyTorch's losses keep as their reduction in the graph."""

NODES_BEFORE_A_LOSS = 8
"""Looked at, at most, between what was logged and PyTorch's loss in it."""

NOT_AVERAGED = (
    "the gradient is not the mean over the ranks, so there is no estimate: the communication hook sums, approximates "
    "or does not exchange gradients; measure without it, or hand norms to log_norms()"
)


SUMS_LOST = (
    "sums over the ranks did not arrive or do not belong together, so there is no estimate: a rank has stopped "
    "watching, or had an error inside noisescale; call watch() and unwatch() on every rank alike"
)

MIN_SPECTRAL_SMALL_BATCHES = 4
"""Small batches that kind `spectral` needs to estimate a deviation."""


def explain_ranks(norms: "StepNorms", notices: Notices) -> bool:
    """Say why a step of a data-parallel job gave no estimate; whether there was such a reason."""
    if norms.are_sums_lost:
        notices.once("sums_lost", SUMS_LOST)
    elif not norms.is_averaged:
        notices.once("not_averaged", NOT_AVERAGED)
    return norms.are_sums_lost or not norms.is_averaged


def is_sum(loss: object) -> bool:
    """Whether a loss, with its graph, is one of PyTorch's that were summed over examples."""
    return getattr(getattr(loss, "grad_fn", None), "_saved_reduction", None) == SUM


def is_weighted(loss: object) -> bool:
    """Whether a loss, with its graph, is a mean of PyTorch's that is divided by the sum of weights by class.

    Looked for behind what a program may do with it: a factor, label smoothing. After the backward the weights
    themselves are gone, and to ask for them is an error; a loss without them says None before and after.
    """
    to_see: list[Any] = [getattr(loss, "grad_fn", None)]
    for node in to_see:  # grows as it goes
        if hasattr(node, "_raw_saved_total_weight"):
            try:
                return node._saved_weight is not None and node._saved_reduction == MEAN
            except RuntimeError:
                return bool(node._saved_reduction == MEAN)
        if node is not None and len(to_see) < NODES_BEFORE_A_LOSS:
            to_see += [before for before, _ in node.next_functions]
    return False


def explain_sizes(norms: "StepNorms", notices: Notices, *, takes_examples: bool) -> None:
    """Say what is missing, or what was read from the model's input.

    Args:
        norms: Of the step.
        notices: Says them once.
        takes_examples: A single backward is no fault: from the next step on each example is a small batch.
    """
    sizes = norms.sizes
    if norms.lacks_parts:
        return  # see `explain_update`
    if not sizes.are_equal and norms.weighting == "by_size":
        notices.once("unequal", UNEQUAL, logging.INFO)
    if sizes.num_small_batches == 0:
        _warn(Flags.NO_BACKWARD, notices)
    elif sizes.num_small_batches == 1:
        if takes_examples:
            notices.once("takes_examples", TAKES_EXAMPLES, logging.INFO)
        else:
            _warn(Flags.ONE_SMALL_BATCH, notices)
    elif sizes.batch_size is None:
        _warn(Flags.BATCH_SIZE_UNKNOWN, notices)
    elif sizes.source == "inferred":
        notices.once(
            "inferred",
            f"batch size {sizes.batch_size:g} in {sizes.num_small_batches} small batches, read from the model's input: "
            "pass batch_size= to log_gradients() if an example is something else",
        )


_SAID_OF_DATA = (
    Flags.HETEROGENEOUS_RANKS,
    Flags.REPEATED_RANKS,
    Flags.DUPLICATED_SMALL_BATCHES,
    Flags.DIFFERENT_SMALL_BATCHES,
)


def explain_update(update: Update, norms: "StepNorms", notices: Notices) -> None:
    """Say why a step with several small batches gave no estimate, or an unusual one."""
    if not update.flags:
        return
    if norms.reason is not None and norms.lacks_parts:
        notices.once(norms.reason, f"a backward could not be taken apart, so its step has no estimate: {norms.reason}")
    elif update.flags & Flags.UNMATCHED_GRADIENT:
        _warn(Flags.UNMATCHED_GRADIENT, notices)
    for flag in _SAID_OF_DATA:
        if update.flags & flag:
            _warn(flag, notices)
    if update.flags & Flags.WEIGHTING_MISMATCH and norms.weighting == "equal":
        _warn(Flags.WEIGHTING_MISMATCH, notices)


def _warn(flag: Flags, notices: Notices) -> None:
    notices.once(code_of(flag), OF_FLAGS[flag].warning)


def way_to_measure(kind: str) -> str:
    """What to do about a kind of noise scale that is not measured."""
    if kind == "hessian":
        return "call log_hessian()"
    if kind in KINDS:
        return f"pass kinds=[{kind!r}] to watch()"
    return f"known are simple, {', '.join(KINDS)} and hessian"


def explain_duty(duty: "DutyCycle", notices: Notices) -> None:
    """Say how often steps are measured from now on, and why."""
    timing = duty.timing
    assert timing is not None
    assert duty.overhead is not None
    assert duty.budget is not None
    if timing.keeps(duty.budget):
        notices.say(
            f"measuring one step in {duty.every} keeps within {100 * duty.overhead:.3g} % of the training's time: a "
            f"measured step costs {1e3 * (timing.measured - timing.unmeasured):.3g} ms more, a step takes "
            f"{1e3 * timing.step:.3g} ms"
        )
        return
    notices.say(
        f"{100 * duty.overhead:.3g} % of a step of {1e3 * timing.step:.3g} ms is less than even a step without "
        f"measurement costs ({1e3 * timing.unmeasured:.3g} ms), so only every {duty.every}th is measured: allow a "
        "larger overhead=, or say every= yourself",
        logging.WARNING,
    )


# Why a noise scale has no number yet, as a clause for people: what is true of this process and this kind.


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
