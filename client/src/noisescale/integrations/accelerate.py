"""Accelerate: watch what `accelerator.prepare()` returned, and log after every `accelerator.backward()`.

noise = watch(accelerator, model, optimizer)
for batch in loader:
    with accelerator.accumulate(model):
        loss = ...
        accelerator.backward(loss)
        noise.log_gradients(loss, batch_size=len(batch))   # before clipping
        ...
"""

from typing import Any

from accelerate import Accelerator
from torch import Tensor, nn

from noisescale.guard import never_raises
from noisescale.options import Loss, renewed
from noisescale.run import active_run
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError


def watch(
    accelerator: Accelerator, model: nn.Module, optimizer: Any, *, run: Run | None = None, **options: Any
) -> "AccumulatedSteps":
    """Measure the gradients of a prepared model.

    `accelerator.backward()` divides the loss by `gradient_accumulation_steps`, whatever the sizes of the micro-batches,
    so they weigh the same; who accumulates by hand and weighs by size passes `loss=Loss(weighting="by_size")`. Where a
    loader ends within a step, that step's gradient, and so its |G|² and tr Σ, are smaller by the missing micro-batches;
    their ratio is right.

    Args:
        accelerator: Its loss scaler and its accumulation are read.
        model: From `accelerator.prepare()`.
        optimizer: From `accelerator.prepare()`.
        run: None: the active run, made on first use.
        options: Of `Run.watch()`.

    Raises:
        ConfigError: For wrong arguments, or a job that cannot be measured.
    """
    if str(accelerator.distributed_type) in ("DistributedType.DEEPSPEED", "DistributedType.MEGATRON_LM"):
        raise ConfigError(
            f"{accelerator.distributed_type} keeps gradients to itself: hand norms to log_norms(), see docs/recipes.md"
        )
    run = active_run.unfinished() if run is None else run
    inner = getattr(optimizer, "optimizer", optimizer)
    given = {"scaler": accelerator.scaler, "loss": Loss()} | renewed(run.watch, options)
    run.watch(model, inner, **given | {"loss": given["loss"].weighed("equal")})
    return AccumulatedSteps(accelerator, run)


class AccumulatedSteps:
    """The steps of a watched model: each has one call per micro-batch.

    Attributes:
        run: Where they are recorded.
        faults: Our own errors so far.

    Args:
        accelerator: Says which micro-batch is the last of its step.
        run: The watched run.
    """

    _loss: Tensor | float | None

    def __init__(self, accelerator: Accelerator, run: Run) -> None:
        self.run = run
        self.faults = run.faults
        self._accelerator = accelerator
        self._start_step()

    @property
    def is_recording(self) -> bool:
        """Whether the run takes anything."""
        return self.run.is_recording

    def leave_out(self, call: str) -> None:
        """The run says it."""
        self.run.leave_out(call)

    @never_raises
    def log_gradients(
        self,
        loss: Tensor | float | None = None,
        batch_size: float | None = None,
        lr: float | None = None,
        step: int | None = None,
    ) -> None:
        """Count a micro-batch; record the step after its last. Right after `accelerator.backward()`, before clipping.

        Args:
            loss: Of the micro-batch, as handed to `accelerator.backward()`.
            batch_size: Examples of the micro-batch in this process; all processes count alike. None: read from the
                model's input.
            lr: As in `Run.log_gradients()`.
            step: As in `Run.log_gradients()`.
        """
        self._num_micro_batches += 1
        if loss is not None:
            detached = loss.detach() if isinstance(loss, Tensor) else loss
            self._loss = detached if self._loss is None else self._loss + detached
        if batch_size is not None:
            self._num_examples += float(batch_size)
        if not self._accelerator.sync_gradients:
            return
        mean_loss = None if self._loss is None else self._loss / self._num_micro_batches
        num_examples = self._num_examples * self._accelerator.num_processes
        self._start_step()
        self.run.log_gradients(mean_loss, num_examples or None, lr, step)

    def _start_step(self) -> None:
        self._num_micro_batches = 0
        self._num_examples = 0.0
        self._loss = None
