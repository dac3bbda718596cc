"""Lightning: `Trainer(..., callbacks=[noise, FollowCallback(noise, micro_batch=8, price=256)])`.

Read in Lightning 2.6, `_TrainingEpochLoop`: a step ends where the number of batches *of the epoch so far* is a multiple
of `trainer.accumulate_grad_batches`, or with the epoch. So that number may change, up or down, at the end of a step at
which what was done is a multiple of the new one, too. The schedule has been stepped by then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from noisescale.integrations.lightning import NoiseScaleCallback
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_core.theory.limits import Limit
from noisescale_lab.follow.batches import Batches
from noisescale_lab.follow.follow import follow
from noisescale_lab.follow.follower import Follower

try:
    import lightning.pytorch as pl
except ModuleNotFoundError:
    import pytorch_lightning as pl


class FollowCallback(pl.Callback):
    """Follows the noise scale of a Lightning `Trainer`'s run; a dry run unless told otherwise.

    Batch size is micro-batch × `accumulate_grad_batches` × processes, of which the middle one changes. Resumed from a
    checkpoint of the `Trainer` it goes on with its decisions.

    Args:
        noise: What measures the noise scale, before this one in the list of callbacks; or the run that is watched.
        micro_batch: Examples in a batch of the loader, on each process.
        smallest: Batch to train with, in examples.
        largest: The same; has to be named before anything is changed.
        limits: Further ones, by `noisescale_core.theory.limits`.
        may_shrink: Whether a batch may become smaller.
        arguments: Of `noisescale.follow()`, such as `price`, `may`, `dry_run`. Batch size, devices, planned steps and
            schedule are those of the `Trainer`.

    Attributes:
        follower: Its decisions; None before the training.
    """

    def __init__(
        self,
        noise: NoiseScaleCallback | Run,
        *,
        micro_batch: int,
        smallest: int | None = None,
        largest: int | None = None,
        limits: Sequence[Limit] = (),
        may_shrink: bool = True,
        **arguments: Any,
    ) -> None:
        self.follower: Follower | None = None
        self._noise = noise
        self._micro_batch = micro_batch
        self._smallest, self._largest, self._limits, self._may_shrink = smallest, largest, limits, may_shrink
        self._arguments = arguments
        self._saved: Mapping[str, Any] | None = None
        self._wanted: int | None = None
        self._is_ready_for = lambda count: False

    # ---- events of the Trainer

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin to follow, or go on where a checkpoint was written.

        Raises:
            ConfigError: For wrong arguments, several optimizers or manual optimization.
        """
        _refuse(trainer, pl_module)
        self._wanted = None
        self._first_count = trainer.accumulate_grad_batches
        self._examples = self._micro_batch * trainer.world_size
        self._num_steps = trainer.global_step
        self._see(trainer, trainer.fit_loop.epoch_loop.batch_progress.current.ready)
        known: dict[str, Any] = {"planned_steps": trainer.max_steps if trainer.max_steps > 0 else None}
        schedules = [config.scheduler for config in trainer.lr_scheduler_configs]
        batches = Batches(
            now=self._examples * trainer.accumulate_grad_batches,
            micro_batch=self._micro_batch,
            devices=trainer.world_size,
            smallest=self._smallest,
            largest=self._largest,
            limits=self._limits,
            may_shrink=self._may_shrink,
            set=self._set_batch_size,
            may_change=lambda batch: self._is_ready_for(batch // self._examples),
        )
        schedule = schedules[0] if schedules else None
        given = known | self._arguments
        self.follower = follow(self._run(), trainer.optimizers[0], batches=batches, scheduler=schedule, **given)
        if self._saved is not None:
            self.follower.load_state_dict(self._saved)
        self._settle(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """A batch is over, and with some of them an optimizer step."""
        if self.follower is None or trainer.global_step == self._num_steps:
            return
        self._num_steps = trainer.global_step
        self._see(trainer, batch_idx + 1)
        self.follower.step()
        self._settle(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Leave the Trainer as it was given."""
        trainer.accumulate_grad_batches = self._first_count

    def state_dict(self) -> dict[str, Any]:
        """What the `Trainer` writes into its checkpoints."""
        return {} if self.follower is None else self.follower.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """What a checkpoint holds; the training that begins goes on with it."""
        self._saved = state_dict or None

    # ---- in between

    def _run(self) -> Run:
        run = self._noise.run if isinstance(self._noise, NoiseScaleCallback) else self._noise
        if run is None:
            raise ConfigError("put NoiseScaleCallback before FollowCallback in callbacks: it makes the run")
        return run

    def _see(self, trainer: pl.Trainer, num_done: int) -> None:
        """Where the epoch stands: which numbers of micro-batches a step can have from here on."""
        is_over = trainer.is_last_batch
        self._is_ready_for = lambda count: is_over or num_done % count == 0

    def _set_batch_size(self, batch: int) -> None:
        self._wanted = batch // self._examples

    def _settle(self, trainer: pl.Trainer) -> None:
        if self._wanted is not None and self._is_ready_for(self._wanted):
            trainer.accumulate_grad_batches, self._wanted = self._wanted, None


def _refuse(trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
    if not pl_module.automatic_optimization:
        raise ConfigError("manual optimization sets its own steps: call noisescale.follow() and follower.step() there")
    if len(trainer.optimizers) != 1:
        raise ConfigError(f"{len(trainer.optimizers)} optimizers share one batch: call noisescale.follow() for one")
