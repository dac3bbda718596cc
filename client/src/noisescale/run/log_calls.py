"""What a training loop logs into a run: one call for each way to know the gradients of a step, and metrics."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from noisescale.config import Config
from noisescale.guard import Faults, never_raises
from noisescale.track.given_log import mean_of_small
from noisescale.track.recorder import Recorder
from noisescale.track.recorders import Recorders
from noisescale_core.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from noisescale_core.estimators.nested_groups import NestedSizes, Tree


class LogCalls:
    """The log calls of a run; none raises into the training.

    Attributes:
        config: Of the run.
        faults: Our own errors so far; `faults.count` should be 0.
        is_finished: Nothing more is recorded.
        is_recording: Neither disabled nor finished.
    """

    config: Config
    faults: Faults
    is_finished: bool
    is_recording: bool
    _main: Recorder
    _recorders: Recorders

    def leave_out(self, call: str) -> None:
        """Say once that a finished run records nothing more."""
        if self.is_finished and call.startswith("log_") and self.config.mode != "disabled":
            self._main.say_once("finished", f"{call}() after finish() is left out: noisescale.init() begins a new run")

    @never_raises
    def log_gradients(
        self,
        loss: "torch.Tensor | float | None" = None,
        batch_size: float | None = None,
        lr: float | None = None,
        step: int | None = None,
        name: str | None = None,
    ) -> None:
        """Record this optimizer step: after the last backward, before clipping and `optimizer.step()`.

        A second call before the next `optimizer.step()` is left out, unless the gradients were cleared in between. A
        call after `optimizer.step()` finds no backward and records no estimate. Steps that are not logged are fine.
        With a `GradScaler` that `watch()` does not know call it before `scaler.unscale_(optimizer)`, too. In a
        data-parallel job one rank may call it or all; the first one sends, and nobody waits for another.

        Args:
            loss: Of the step; one number, also on the device, where it is read later.
            batch_size: Global batch in examples; None: the leading dimension of the model's first tensor argument,
                summed over the step.
            lr: None: of the optimizer's first parameter group.
            step: Number of the optimizer step; None: counted.
            name: Of the optimizer, where several are watched.
        """
        recorder = self._main if name is None else self._recorders.named(name)
        watch = recorder.watch
        if watch is None or not watch.duty.is_timing:
            recorder.log_gradients(loss, batch_size, lr, step)
            return
        start = time.perf_counter()
        recorder.log_gradients(loss, batch_size, lr, step)
        watch.duty.add_cost(time.perf_counter() - start)

    def log_norms(
        self,
        *,
        small_batch_size: float,
        big_batch_size: float,
        big_sq_norm: float,
        small_sq_norm: "float | Sequence[float] | None" = None,
        sum_small_sq_norm: float | None = None,
        num_small: int | None = None,
        step: int | None = None,
        loss: float | None = None,
        lr: float | None = None,
        layers: "Mapping[str, tuple[float, float]] | None" = None,
    ) -> None:
        """Record a step whose squared gradient norms you measured, in any framework.

        Args:
            small_batch_size: Examples per small batch.
            big_batch_size: Examples of the step.
            big_sq_norm: |G_B|² of the whole batch's mean gradient, before clipping.
            small_sq_norm: Mean of |G_B|² over the small batches (mean of squares, not square of a mean); or a list of
                them, such as one a rank.
            sum_small_sq_norm: Their sum instead, as an all-reduce over the ranks gives it; needs `num_small`.
            num_small: Small batches in the step; None: as many as were given, or big_batch_size / small_batch_size.
            step: Number of the optimizer step; None: counted.
            loss: Of the step.
            lr: Learning rate.
            layers: (small_sq_norm as a mean, big_sq_norm) of each layer by its name, the same layers at each step.
        """
        try:  # as `never_raises` does, without packing ten arguments: a twentieth of the call's time
            if not self.is_recording:
                self.leave_out("log_norms")
                return
            if type(small_sq_norm) is float and sum_small_sq_norm is None:
                mean = small_sq_norm  # as most are, before dearer questions
            else:
                mean, num_small = mean_of_small(small_sq_norm, sum_small_sq_norm, num_small)
            main = self._main
            with main.lock:
                # by place: names cost a microsecond
                main.given.log_norms(
                    small_batch_size, big_batch_size, mean, big_sq_norm, num_small, step, loss, lr, layers
                )
        except Exception as fault:  # noqa: BLE001  # a public call: one of the client's three
            self.faults.report(fault)

    @never_raises
    def log_nested_norms(
        self,
        sum_sq_norms: "Mapping[str, float]",
        big_sq_norm: float,
        sizes: "NestedSizes | Sequence[Tree]",
        *,
        step: int | None = None,
        loss: float | None = None,
        lr: float | None = None,
    ) -> None:
        """Record a step of groups inside groups, such as prompts and their rollouts, with the noise of each level.

        The noise scale is that of a batch which grows by more of the coarsest groups. What the units of a group share
        at each level goes into metrics: "noise/prompt", "noise/rollout".

        Args:
            sum_sq_norms: Σ n |g|² over the groups of each level by its name, the coarsest first: n units in a group, g
                their mean gradient. Sums over ranks simply add.
            big_sq_norm: |ḡ|² of the whole step's mean gradient, before clipping.
            sizes: Units of the finest groups, nested as the groups are: [[4, 4], [4, 3]] are two prompts of two groups
                of rollouts each; or a `NestedSizes`, which adds over ranks.
            step: Number of the optimizer step; None: counted.
            loss: Of the step.
            lr: Learning rate.
        """
        with self._main.lock:
            self._main.given.log_nested_norms(sum_sq_norms, big_sq_norm, sizes, step=step, loss=loss, lr=lr)

    @never_raises
    def log_hessian(
        self,
        losses: "Sequence[Callable[[], torch.Tensor]]",
        sizes: "Sequence[float] | None" = None,
        curvature_loss: "Callable[[], torch.Tensor] | None" = None,
        step: int | None = None,
        name: str | None = None,
    ) -> None:
        """Measure kind `hessian` at this point of the training, by Hessian-vector products; a series of its own.

        Neither `p.grad` nor random numbers nor buffers change, and the step that runs is measured as without. It costs
        K gradients and K products, a few backward passes each, with a curvature loss; K (K - 1) products without. So
        call it now and then: every 100th step, say.

        Args:
            losses: Each computes the mean loss of one small batch, a forward without backward. At least 2, or 3
                without a curvature loss.
            sizes: Their examples; None: all equal, and one each.
            curvature_loss: The mean loss of examples that are in none of the small batches; None: each small batch in
                turn gives the curvature for the others.
            step: Number of the optimizer step; None: the one that runs.
            name: Of the optimizer, where several are watched.
        """
        self._recorders.named(name).log_hessian(losses, sizes, curvature_loss, step)

    @never_raises
    def log_metrics(
        self, /, step: int | Mapping[str, float] | None = None, *numbers: Mapping[str, float], **values: float
    ) -> None:
        """Record evaluation loss, accuracy, score or whatever else belongs to a step.

        `log_metrics(eval_loss=0.5)`, `log_metrics(200, eval_loss=0.5)` and, for any name, `log_metrics({"eval/loss":
        0.5})` and `log_metrics(200, {"eval/loss": 0.5})`.

        Args:
            step: Number of the optimizer step; None: the newest. Or numbers by name, of the newest step.
            numbers: By name.
            values: Numbers by name; one that is not finite is kept as "none". A tensor on a device is waited for.
        """
        by_name = numbers
        if isinstance(step, Mapping):
            by_name = (step, *numbers)
            step = None
        wrong = next((given for given in by_name if not isinstance(given, Mapping)), None)
        if wrong is not None:
            raise ConfigError(f'log_metrics takes numbers by name, such as {{"eval/loss": 0.5}}, got {wrong!r}')
        found = {name: value for given in (*by_name, values) for name, value in given.items()}
        if step is not None and not found:
            raise ConfigError(
                f'log_metrics was given step {step!r} and no number: log_metrics({step!r}, {{"loss": 0.5}})'
            )
        if found:
            self._main.log_metrics(step, found)
