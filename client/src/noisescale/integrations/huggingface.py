"""Hugging Face `Trainer`: `Trainer(..., callbacks=[NoiseScaleCallback(project="...", task="...")])`.

The `Trainer` clips before it calls `on_pre_optimizer_step`, and a callback sees neither the `Trainer` nor its batches.
So sizes are read where the model is called, and the step is logged at the end of the backward after which the
`Trainer` synchronises.
"""

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from noisescale.capture.hooks.hooks import leading_dimension
from noisescale.guard import Faults, Notices, never_raises
from noisescale.integrations.item_counts import count_labels, count_rows, shifts_labels, takes_item_count
from noisescale.integrations.training_hooks import ForwardHook, after_backward, output_tensors
from noisescale.mirrors.mirroring import shown_values
from noisescale.options import Loss, Machine, renewed
from noisescale.run import active_run
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError

LOSS_OUTSIDE = (
    "the loss is computed outside of the model, so how it weighs micro-batches is not known: pass "
    'NoiseScaleCallback(weighting="by_size") if it divides by num_items_in_batch, else weighting="equal"'
)


class NoiseScaleCallback(TrainerCallback):
    """Measures the gradient noise scale of a `Trainer`'s run.

    Small batches are micro-batches and ranks; with neither, examples where the layers allow it. Evaluation does not
    count; a resumed training goes on at its step. The numbers also go into `trainer.state.log_history` and the progress
    bar at every `logging_steps`; `report_to` trackers are written before this callback is called: use `mirror=` for
    them.

    Args:
        project: As in `noisescale.init()`.
        task: As in `noisescale.init()`.
        name: As in `noisescale.init()`; None: the `Trainer`'s `run_name`.
        run: Use this run, and do not finish it, instead of making one; then nothing else describes it.
        weighting: "by_size" where losses are divided by `num_items_in_batch`, "equal" where by the number of
            micro-batches; None: as the `Trainer` does for this model. Needed with a `compute_loss_func` only.
        watch: Further arguments of `Run.watch()`, such as `{"overhead": 0.01}`.
        described: Further arguments of `noisescale.init()`, such as `mirror="wandb"` or `units=Units(unit="tokens")`.
    """

    def __init__(
        self,
        project: str | None = None,
        task: str | None = None,
        name: str | None = None,
        *,
        run: Run | None = None,
        weighting: Literal["by_size", "equal"] | None = None,
        watch: Mapping[str, Any] | None = None,
        **described: Any,
    ) -> None:
        self._given_run = run
        self._described = {"project": project, "task": task, "name": name} | renewed(active_run.init, described)
        self._weighting = weighting
        self._watch_options = {"loss": Loss()} | renewed(Run.watch, watch or {})
        self.run = run
        self._hook: torch.utils.hooks.RemovableHandle | None = None
        self._start_step()

    # ---- what `never_raises` asks

    @property
    def is_recording(self) -> bool:
        """Whether a training is watched."""
        return self._hook is not None and self.run is not None and self.run.is_recording

    @property
    def faults(self) -> Faults:
        """Our own errors so far."""
        assert self.run is not None
        return self.run.faults

    def leave_out(self, call: str) -> None:
        """Leave no call out: the training is not watched."""

    # ---- events of the Trainer

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: nn.Module,
        optimizer: Any,
        **_: object,
    ) -> None:
        """Watch the model.

        Raises:
            ConfigError: For wrong arguments, or a job that cannot be measured.
        """
        _refuse(args)
        self._stop()
        if self._given_run is None and (self.run is None or self.run.is_finished):
            self.run = active_run.init(**_description(args, state, self._described))
        assert self.run is not None
        self._args = args
        self._state = state
        self._gradient_state = optimizer.gradient_state
        self._counts_items = self._weighting == "by_size" or (self._weighting is None and takes_item_count(model))
        self._is_shifted = shifts_labels(model)
        is_local_share = self._counts_items and args.average_tokens_across_devices
        self._loss_scale = args.world_size if is_local_share else 1
        self._notices = Notices()
        self.run.watch(
            model,
            optimizer.optimizer,
            scaler=optimizer.scaler,
            **self._watch_options
            | {"loss": self._watch_options["loss"].weighed("by_size" if self._counts_items else "equal")},
        )
        # What is compiled is the inside of the model's call, so the hook is traced with it: it must not be.
        see = torch.compiler.disable(self._see_forward) if args.torch_compile else self._see_forward
        self._hook = model.register_forward_hook(ForwardHook(model, see), with_kwargs=True)

    @never_raises
    def on_step_begin(self, /, *_: object, **__: object) -> None:
        """Forget what the step before left."""
        self._start_step()

    @never_raises
    def on_pre_optimizer_step(self, /, *_: object, **__: object) -> None:
        """Record a step whose backward was not seen: without an estimate, and with its reason."""
        if not self._is_logged:
            self._log_step()

    @never_raises
    def on_log(
        self,
        /,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: object,
    ) -> None:
        """Add the numbers to the log of a training step."""
        if logs is None or "loss" not in logs or not state.is_world_process_zero:
            return
        assert self.run is not None
        values = shown_values(self.run.noise_scale())
        logs.update(values)
        if state.log_history:
            state.log_history[-1].update(values)

    @never_raises
    def on_evaluate(
        self,
        /,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, Any] | None = None,
        **_: object,
    ) -> None:
        """Record what the evaluation found."""
        numbers = {name: value for name, value in (metrics or {}).items() if isinstance(value, int | float)}
        assert self.run is not None
        self.run.log_metrics(max(0, state.global_step - 1), **numbers)

    def on_train_end(self, *_: object, **__: object) -> None:
        """Take the hooks off and deliver what is left."""
        self._stop()
        if self.run is not None and self._given_run is None:
            self.run.finish()

    # ---- one step

    def _start_step(self) -> None:
        self._num_examples: float | None = 0.0
        self._num_micro_batches = 0
        self._loss: Tensor | None = None
        self._is_logged = False
        self._start_micro_batch()

    def _start_micro_batch(self) -> None:
        self._items: float | Tensor | None = None
        self._open: contextlib.AbstractContextManager[None] | None = None
        self._is_in_backward = False

    @never_raises
    def _see_forward(self, args: Sequence[Any], kwargs: Mapping[str, Any], output: object) -> None:
        outputs = output_tensors(output)
        if not outputs:
            return
        if self._is_in_backward:  # the last backward failed half-way
            self._close_micro_batch()
        size = leading_dimension([*args, *kwargs.values()])
        self._num_examples = None if size is None or self._num_examples is None else self._num_examples + size
        loss = outputs.get("loss")
        if loss is not None:
            # The product is a copy: the Trainer multiplies the loss itself, in place.
            detached = loss.detach() * self._loss_scale
            self._loss = detached if self._loss is None else self._loss + detached
        count_from_gradient = False
        if self._counts_items:
            items = self._share(kwargs, has_loss=loss is not None)
            count_from_gradient = items is None and "logits" in outputs
            self._items = items if self._items is None or items is None else self._items + items
        elif loss is None and self._weighting is None and not self._args.label_smoothing_factor:
            self._notices.once("loss outside", LOSS_OUTSIDE)
        start = loss if loss is not None else outputs.get("logits", next(iter(outputs.values())))
        start.register_hook(partial(self._backward_begins, count_from_gradient))

    def _share(self, kwargs: Mapping[str, Any], *, has_loss: bool) -> float | Tensor | None:
        """What a micro-batch counts in the step's loss; None where only its gradient can tell."""
        if has_loss and self._weighting is None and "num_items_in_batch" not in kwargs:
            return 1.0  # no labels to count: the Trainer falls back to the mean over micro-batches
        items = count_labels(kwargs, is_shifted=self._is_shifted)
        if items is None or self._args.average_tokens_across_devices or self._args.world_size == 1:
            return items
        # Each process divides by its own count, and all weigh the same.
        return items / cast(Tensor, kwargs["num_items_in_batch"])

    @never_raises
    def _backward_begins(self, count_from_gradient: bool, gradient: Tensor) -> None:
        if self._is_in_backward:
            return
        self._is_in_backward = True
        assert self.run is not None
        if self._counts_items:
            items = count_rows(gradient) if count_from_gradient else self._items
            self._open = self.run.micro_batch(items)
            self._open.__enter__()
        after_backward(self._backward_ended)

    @never_raises
    def _backward_ended(self) -> None:
        self._num_micro_batches += 1
        self._close_micro_batch()
        if self._gradient_state.sync_gradients and not self._is_logged:
            self._log_step()

    def _close_micro_batch(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
        self._start_micro_batch()

    def _log_step(self) -> None:
        assert self.run is not None
        self._is_logged = True
        loss = self._loss
        if loss is not None and not self._counts_items:
            loss = loss / self._num_micro_batches
        batch_size = self._num_examples * self._args.world_size if self._num_examples else None
        self.run.log_gradients(loss=loss, batch_size=batch_size, step=self._state.global_step)

    def _stop(self) -> None:
        """Take the hooks off; also where an earlier training ended without `on_train_end`."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
            assert self.run is not None
            self.run.unwatch()


def _refuse(args: TrainingArguments) -> None:
    if args.n_gpu > 1:
        raise ConfigError(
            f"torch.nn.DataParallel over {args.n_gpu} devices is not supported: start the job with torchrun"
        )
    if getattr(args, "deepspeed", None):
        raise ConfigError("DeepSpeed keeps gradients to itself: hand norms to log_norms(), see docs/recipes.md")


def _description(args: TrainingArguments, state: TrainerState, described: Mapping[str, Any]) -> dict[str, Any]:
    known = {
        "name": args.run_name,
        "config": args.to_sanitized_dict(),
        "planned_steps": state.max_steps,
    }
    given = {name: value for name, value in described.items() if value is not None}
    return known | given | {"machine": given.get("machine", Machine()).of_world(args.world_size)}
