"""Lightning: `Trainer(accumulate_grad_batches=8, callbacks=[NoiseScaleCallback(project="...", task="...")])`.

Lightning divides each loss by `accumulate_grad_batches`, so micro-batches weigh the same. It unscales, calls
`on_before_optimizer_step` and then clips, so this is where a step is logged. The callback serves the older package
`pytorch_lightning` as well.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from noisescale.guard import Faults, never_raises
from noisescale.mirrors.mirroring import shown_values
from noisescale.options import Loss, Machine, renewed
from noisescale.run import active_run
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError

try:
    import lightning.pytorch as pl
    from lightning.pytorch.utilities.data import extract_batch_size
except ModuleNotFoundError:
    import pytorch_lightning as pl
    from pytorch_lightning.utilities.data import extract_batch_size


class NoiseScaleCallback(pl.Callback):
    """Measures the gradient noise scale in `Trainer.fit()`.

    Small batches are those that `accumulate_grad_batches` adds up, in manual optimization every `manual_backward()`,
    and ranks; with none of them, examples where the layers allow it. Each of several optimizers is measured by itself:
    the first is the run, each further one a run beside it. The numbers are logged with `pl_module.log()` too, every
    `log_every_n_steps`. Where an epoch ends within a step, that step's gradient, and so its |G|² and tr Σ, are smaller
    by the missing micro-batches; their ratio is right.

    Args:
        project: As in `noisescale.init()`.
        task: As in `noisescale.init()`.
        name: As in `noisescale.init()`.
        run: Use this run, and do not finish it, instead of making one; then nothing else describes it.
        optimizers: Names of the optimizers, where there are several; None: "optimizer 0", ...
        count_examples: From a batch to its number of examples; None: as Lightning reads it.
        watch: Further arguments of `Run.watch()`, such as `{"overhead": 0.01}` or
            `{"loss": Loss(weighting="by_size")}`.
        described: Further arguments of `noisescale.init()`, such as `mirror="wandb"` or
            `units=Units(unit="tokens")`.
    """

    _loss: Tensor | None

    def __init__(
        self,
        project: str | None = None,
        task: str | None = None,
        name: str | None = None,
        *,
        run: Run | None = None,
        optimizers: Sequence[str] | None = None,
        count_examples: Callable[[Any], float] | None = None,
        watch: Mapping[str, Any] | None = None,
        **described: Any,
    ) -> None:
        self._given_run = run
        self._described = {"project": project, "task": task, "name": name} | renewed(active_run.init, described)
        self._given_names = optimizers
        self._count_examples = count_examples or extract_batch_size
        given = {"loss": Loss()} | renewed(Run.watch, watch or {})
        self._watch_options = given | {"loss": given["loss"].weighed("equal")}
        self.run = run
        self._names: dict[int, str | None] = {}
        self._start_counting()

    # ---- what `never_raises` asks

    @property
    def is_recording(self) -> bool:
        """Whether a training is watched."""
        return bool(self._names) and self.run is not None and self.run.is_recording

    @property
    def faults(self) -> Faults:
        """Our own errors so far."""
        assert self.run is not None
        return self.run.faults

    def leave_out(self, call: str) -> None:
        """Leave no call out: the training is not watched."""

    # ---- events of the Trainer

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Watch the module with each of its optimizers.

        Raises:
            ConfigError: For wrong arguments, or a training that cannot be measured.
        """
        self._stop()
        names = _names(trainer.optimizers, self._given_names)
        if self._given_run is None and (self.run is None or self.run.is_finished):
            known = {"planned_steps": trainer.max_steps} if trainer.max_steps > 0 else {}
            given = {name: value for name, value in self._described.items() if value is not None}
            machine = given.pop("machine", Machine()).of_world(trainer.world_size)
            self.run = active_run.init(**known | given, machine=machine)
        assert self.run is not None
        self._scaler = getattr(trainer.precision_plugin, "scaler", None)
        for optimizer, name in zip(trainer.optimizers, names, strict=True):
            self.run.watch(pl_module, optimizer, scaler=self._scaler, name=name, **self._watch_options)
        self._names = {id(optimizer): name for optimizer, name in zip(trainer.optimizers, names, strict=True)}
        self._shown_at = trainer.global_step

    @never_raises
    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Count the examples of a micro-batch."""
        self._num_examples += float(self._count_examples(batch))

    @never_raises
    def on_before_backward(self, trainer: pl.Trainer, pl_module: pl.LightningModule, loss: Tensor) -> None:
        """Add up the loss, which is divided and scaled already."""
        if len(self._names) > 1:
            return  # nothing says whose it is
        unscaled = loss.detach()
        if self._scaler is not None:
            # A scaled one is the scale as a tensor: get_scale() would wait for the device.
            unscaled = unscaled / self._scaler.scale(torch.ones_like(unscaled))
        self._loss = unscaled if self._loss is None else self._loss + unscaled

    @never_raises
    def on_before_optimizer_step(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Record the step of this optimizer."""
        if id(optimizer) not in self._names:
            return
        num_examples = self._num_examples - self._counted.get(id(optimizer), 0.0)
        self._counted[id(optimizer)] = self._num_examples
        loss, self._loss = self._loss, None
        assert self.run is not None
        self.run.log_gradients(
            loss=loss,
            batch_size=num_examples * trainer.world_size or None,
            # The Trainer counts the steps of all optimizers together.
            step=trainer.global_step if len(self._names) == 1 else None,
            name=self._names[id(optimizer)],
        )

    @never_raises
    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Show the numbers where the Trainer's loggers and callbacks find them."""
        if trainer.global_step - self._shown_at >= trainer.log_every_n_steps:
            self._shown_at = trainer.global_step
            assert self.run is not None
            pl_module.log_dict(shown_values(self.run.noise_scale()), batch_size=1, rank_zero_only=True)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take the hooks off and deliver what is left."""
        self._end("finished")

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """End the run as failed."""
        self._end("failed")

    # ---- in between

    def _start_counting(self) -> None:
        self._num_examples = 0.0
        self._counted: dict[int, float] = {}
        self._loss = None

    def _stop(self) -> None:
        if self._names:
            self._names = {}
            assert self.run is not None
            self.run.unwatch()
        self._start_counting()

    def _end(self, status: Literal["finished", "failed"]) -> None:
        self._stop()
        if self.run is not None and self._given_run is None:
            self.run.finish(status)


def _names(optimizers: Sequence[object], given: Sequence[str] | None) -> list[str | None]:
    if given is not None and len(given) != len(optimizers):
        raise ConfigError(f"optimizers must have {len(optimizers)} names, one for each optimizer, got {given!r}")
    if given is not None:
        return list(given)
    return [None] if len(optimizers) == 1 else [f"optimizer {index}" for index in range(len(optimizers))]
