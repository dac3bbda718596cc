"""Hugging Face `Trainer`: `Trainer(..., callbacks=[noise, FollowCallback(noise, price=256, largest=2048)])`.

What the `Trainer` can change while it runs is the number of micro-batches in a step, and the learning rate. Read in
transformers 5.23, `Trainer._run_epoch`: a step takes as many micro-batches from the loader as
`args.gradient_accumulation_steps` says then, but it ends where the number of micro-batches *of the epoch so far* is a
multiple of that; so a change waits for such a step. The number of steps of an epoch is fixed at the start, and an epoch
that would need more of them ends early and leaves data out; so batches may only grow. A loader without a length is one
epoch of `max_steps`, whose last step takes what the first one took; there batches are multiples of the first one, and
the last step is of that size again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import has_length

from noisescale.integrations.huggingface import NoiseScaleCallback
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_core.theory.limits import Limit
from noisescale_lab.follow.batches import Batches
from noisescale_lab.follow.follow import follow
from noisescale_lab.follow.follower import Follower

IS_EMPTY = (
    "FollowCallback needs NoiseScaleCallback or a run, and largest: restore_callback_states_from_checkpoint=True "
    "makes callbacks anew without their arguments, leave it off; the follower's state is restored all the same"
)


class FollowCallback(TrainerCallback, ExportableState):
    """Follows the noise scale of a `Trainer`'s run; a dry run unless told otherwise.

    Batch size is per-device batch × `gradient_accumulation_steps` × processes, of which the middle one changes. Resumed
    from a checkpoint of the `Trainer` it goes on with its decisions.

    Args:
        noise: What measures the noise scale, before this one in the list of callbacks; or the run that is watched.
        smallest: Batch to train with, in examples.
        largest: The same; has to be named before anything is changed.
        limits: Further ones, by `noisescale_core.theory.limits`.
        arguments: Of `noisescale.follow()`, such as `price`, `may`, `dry_run`. Batch size, micro-batch, devices,
            planned steps and schedule are those of the `Trainer`, whose batches only grow.

    Attributes:
        follower: Its decisions; None before the training.
    """

    def __init__(
        self,
        noise: NoiseScaleCallback | Run | None = None,
        *,
        smallest: int | None = None,
        largest: int | None = None,
        limits: Sequence[Limit] = (),
        **arguments: Any,
    ) -> None:
        self._smallest, self._largest, self._limits = smallest, largest, limits
        self.follower: Follower | None = None
        self._noise = noise
        self._arguments = arguments
        self._wanted: int | None = None
        self._first_count = 0

    # ---- events of the Trainer

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        optimizer: Any,
        lr_scheduler: Any,
        train_dataloader: Any,
        **_: object,
    ) -> None:
        """Begin to follow, or go on where a checkpoint was written.

        Raises:
            ConfigError: For wrong arguments.
        """
        self._args, self._state = args, state
        self._first_count, self._wanted = args.gradient_accumulation_steps, None
        self._micro_batch = (state.train_batch_size or args.train_batch_size) * args.world_size
        self._has_length = has_length(train_dataloader)
        planned = state.max_steps * args.gradient_accumulation_steps
        self._micro_batches_in_epoch = len(train_dataloader) if self._has_length else planned
        whole = self._micro_batch * args.gradient_accumulation_steps
        batches = Batches(
            now=whole,
            micro_batch=self._micro_batch // args.world_size,
            devices=args.world_size,
            multiple_of=None if self._has_length else whole,
            smallest=self._smallest,
            largest=self._largest,
            limits=self._limits,
            may_shrink=False,
            set=self._set_batch_size,
            may_change=self._may_change,
        )
        given = {"planned_steps": state.max_steps} | self._arguments
        self.follower = follow(self._run(), optimizer, batches=batches, scheduler=lr_scheduler, **given)
        saved = _saved(state)
        if saved is not None and state.global_step > 0:
            self.follower.load_state_dict(saved)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """An optimizer step and the scheduler's are over."""
        if self.follower is None:
            return
        self._state = state
        self.follower.step()
        if self._wanted is not None and self._is_aligned(self._wanted):
            args.gradient_accumulation_steps, self._wanted = self._wanted, None
        if not self._has_length and state.global_step == state.max_steps - 1:
            args.gradient_accumulation_steps = self._first_count

    def on_train_end(self, args: TrainingArguments, *_: object, **__: object) -> None:
        """Leave the arguments as they were given."""
        if self._first_count:
            args.gradient_accumulation_steps = self._first_count

    def state(self) -> dict[str, Any]:
        """What the `Trainer` writes into its checkpoints."""
        saved = None if self.follower is None else self.follower.state_dict()
        return {"args": {}, "attributes": {"_saved": saved}}

    # ---- in between

    def _run(self) -> Run:
        run = self._noise.run if isinstance(self._noise, NoiseScaleCallback) else self._noise
        if run is None:
            way = IS_EMPTY if self._noise is None else "put NoiseScaleCallback before FollowCallback in callbacks"
            raise ConfigError(way)
        return run

    def _may_change(self, batch: int) -> bool:
        return self._is_aligned(batch // self._micro_batch)

    def _set_batch_size(self, batch: int) -> None:
        self._wanted = batch // self._micro_batch

    def _is_aligned(self, count: int) -> bool:
        """Whether a step of so many micro-batches can begin here."""
        length = self._micro_batches_in_epoch
        num_done = round((self._state.epoch or 0.0) % 1 * length) % length
        return num_done % count == 0


def _saved(state: TrainerState) -> Mapping[str, Any] | None:
    """The follower's state in a checkpoint of the Trainer."""
    kept: Any = state.stateful_callbacks or {}
    found = kept.get(FollowCallback.__name__, {})
    of_first = found[0] if isinstance(found, list) else found
    saved: Mapping[str, Any] | None = of_first.get("attributes", {}).get("_saved")
    return saved
