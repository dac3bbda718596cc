"""Sentences that say once what the sizes of a step mean for its estimate."""

from noisescale.capture.step_norms import StepSizes
from noisescale.guard import Notices

ONE_SMALL_BATCH = (
    "one backward a step gives no noise scale: split the batch into micro-batches and accumulate their gradients, for "
    "example 8 backward passes of an eighth of the batch each, or measure norms yourself and call log_norms(); loss, "
    "learning rate and batch size are recorded all the same"
)
NO_BACKWARD = "no backward since the last optimizer.step(): call log_gradients() before optimizer.step()"
BATCH_SIZE_UNKNOWN = "the model's input does not tell the batch size: pass batch_size= to log_gradients()"

DOES_NOT_ADD_UP = (
    "the gradients are not the sum of the step's backward passes, so there is no estimate: call log_gradients() right "
    "after the last backward, before gradients are clipped, unscaled, averaged or cleared"
)


def explain_sizes(sizes: StepSizes, notices: Notices) -> None:
    """Say what is missing, or what was read from the model's input."""
    if sizes.num_small_batches == 0:
        notices.once("no_backward", NO_BACKWARD)
    elif sizes.num_small_batches == 1:
        notices.once("one_small_batch", ONE_SMALL_BATCH)
    elif not sizes.adds_up:
        notices.once("does_not_add_up", DOES_NOT_ADD_UP)
    elif sizes.batch_size is None:
        notices.once("batch_size_unknown", BATCH_SIZE_UNKNOWN)
    elif sizes.source == "inferred":
        notices.once(
            "inferred",
            f"batch size {sizes.batch_size:g} in {sizes.num_small_batches} small batches, read from the model's input: "
            "pass batch_size= to log_gradients() if an example is something else",
        )
