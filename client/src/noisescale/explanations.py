"""Sentences that say once what a step means for its estimate, and the way out."""

import logging
from typing import TYPE_CHECKING

from noisescale.guard import Notices, logger
from noisescale.updates import Update
from noisescale_core.estimators.flags import Flags

if TYPE_CHECKING:
    from noisescale.capture.duty_cycle import DutyCycle
    from noisescale.capture.step_norms import StepNorms

KINDS = ("adam", "sign", "spectral")

ONE_SMALL_BATCH = (
    "one backward a step gives no noise scale, and this model's examples cannot be told apart by themselves: split the "
    "batch into micro-batches and accumulate their gradients, for example 8 backward passes of an eighth of the batch "
    "each; or pass watch() split=8, or small_batches='per_example' for the layers that allow it; or measure norms "
    "yourself and call log_norms(). Loss, learning rate and batch size are recorded all the same"
)
TAKES_EXAMPLES = (
    "one backward a step: from the next step on each example is a small batch (per-example norms, within 5 % of the "
    "training's time); accumulate micro-batches for less, or pass small_batches='micro_batches' to watch() for none"
)
NO_BACKWARD = "no backward since the last optimizer.step(): call log_gradients() before optimizer.step()"
BATCH_SIZE_UNKNOWN = (
    "the model's input does not tell the batch size: pass batch_size= to log_gradients(); of a compiled model watch "
    "what torch.compile() has returned, or call model.compile() before watch()"
)

UNMATCHED_GRADIENT = (
    "the gradients are not the sum of the step's backward passes, so there is no estimate: call log_gradients() right "
    "after the last backward, before gradients are clipped, unscaled, averaged or cleared; with a GradScaler say "
    "watch(..., scaler=scaler), then it may come after unscale_(), too"
)


DUPLICATED_SMALL_BATCHES = (
    "all small batches of a step have the same gradient, so there is no noise to measure: the same examples in each "
    "micro-batch or on each rank; give every rank its own data (DistributedSampler, another seed)"
)

UNEQUAL = (
    "micro-batches differ in size, and are taken as weighted by their sizes, which makes the gradient the mean over "
    "all examples; if the loop averages them with equal weight (each loss divided by their number), say "
    "watch(..., weighting='equal')"
)

WEIGHTING_MISMATCH = (
    "micro-batches of different sizes are averaged with equal weight: this gradient is not the mean over all examples; "
    "divide each loss by the step's number of examples instead of averaging"
)


HETEROGENEOUS_RANKS = (
    "the gradients of the ranks differ by more than their micro-batches explain: the ranks see different data, and the "
    "noise between them is overstated; shuffle over all ranks (DistributedSampler with set_epoch)"
)

NOT_AVERAGED = (
    "the gradient is not the mean over the ranks, so there is no estimate: the communication hook sums, approximates "
    "or does not exchange gradients; measure without it, or hand norms to log_norms()"
)


SUMS_LOST = (
    "sums over the ranks did not arrive or do not belong together, so there is no estimate: a rank has stopped "
    "watching, or had a fault of ours; call watch() and unwatch() on every rank alike"
)


def explain_ranks(norms: "StepNorms", notices: Notices) -> bool:
    """Say why a step of a data-parallel job gave no estimate; whether there was such a reason."""
    if norms.are_sums_lost:
        notices.once("sums_lost", SUMS_LOST)
    elif not norms.is_averaged:
        notices.once("not_averaged", NOT_AVERAGED)
    return norms.are_sums_lost or not norms.is_averaged


def explain_sizes(norms: "StepNorms", notices: Notices, *, takes_examples: bool) -> None:
    """Say what is missing, or what was read from the model's input.

    Args:
        norms: Of the step.
        notices: Says them once.
        takes_examples: A single backward is no fault: from the next step on each example is a small batch.
    """
    sizes = norms.sizes
    if norms.reason is not None:
        return  # see `explain_update`
    if not sizes.are_equal and norms.weighting == "by_size":
        notices.once("unequal", UNEQUAL, logging.INFO)
    if sizes.num_small_batches == 0:
        notices.once("no_backward", NO_BACKWARD)
    elif sizes.num_small_batches == 1:
        if takes_examples:
            notices.once("takes_examples", TAKES_EXAMPLES, logging.INFO)
        else:
            notices.once("one_small_batch", ONE_SMALL_BATCH)
    elif sizes.batch_size is None:
        notices.once("batch_size_unknown", BATCH_SIZE_UNKNOWN)
    elif sizes.source == "inferred":
        notices.once(
            "inferred",
            f"batch size {sizes.batch_size:g} in {sizes.num_small_batches} small batches, read from the model's input: "
            "pass batch_size= to log_gradients() if an example is something else",
        )


def explain_update(update: Update, norms: "StepNorms", notices: Notices) -> None:
    """Say why a step with several small batches gave no estimate, or an unusual one."""
    if not update.flags:
        return
    if norms.reason is not None:
        notices.once(norms.reason, f"a backward could not be taken apart, so its step has no estimate: {norms.reason}")
    elif update.flags & Flags.UNMATCHED_GRADIENT:
        notices.once("unmatched_gradient", UNMATCHED_GRADIENT)
    if update.flags & Flags.HETEROGENEOUS_RANKS:
        notices.once("heterogeneous_ranks", HETEROGENEOUS_RANKS)
    if update.flags & Flags.DUPLICATED_SMALL_BATCHES:
        notices.once("duplicated_small_batches", DUPLICATED_SMALL_BATCHES)
    if update.flags & Flags.WEIGHTING_MISMATCH and norms.weighting == "equal":
        notices.once("weighting_mismatch", WEIGHTING_MISMATCH)


def way_to_measure(kind: str) -> str:
    """What to do about a kind of noise scale that is not measured."""
    if kind == "hessian":
        return "call log_hessian()"
    if kind in KINDS:
        return f"pass kinds=[{kind!r}] to watch()"
    return f"known are simple, {', '.join(KINDS)} and hessian"


def explain_duty(duty: "DutyCycle") -> None:
    """Say how often steps are measured from now on, and why."""
    timing = duty.timing
    assert timing is not None
    assert duty.overhead is not None
    if not timing.keeps(duty.overhead):
        logger.warning(
            "%.3g %% of a step of %.3g ms is less than even a step without measurement costs (%.3g ms), so only every "
            "%dth is measured: allow a larger overhead=, or say every= yourself",
            100 * duty.overhead,
            1e3 * timing.step,
            1e3 * timing.unmeasured,
            duty.every,
        )
        return
    logger.info(
        "measuring one step in %d keeps within %.3g %% of the training's time: a measured step costs %.3g ms more, "
        "a step takes %.3g ms",
        duty.every,
        100 * duty.overhead,
        1e3 * (timing.measured - timing.unmeasured),
        1e3 * timing.step,
    )
