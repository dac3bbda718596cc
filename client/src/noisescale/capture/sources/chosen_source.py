"""Where the small batches of a watch come from: what its options name, or what turns out to be there."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from noisescale.capture.data_parallel.recognise import is_sharded
from noisescale.capture.duty_cycle import DutyCycle
from noisescale.capture.per_example.coverage import Layers
from noisescale.capture.per_example.norms import PerExampleNorms
from noisescale.capture.sources.gradient_source import SENTENCES, GradientSource
from noisescale.capture.sources.split import Split
from noisescale.capture.sums.row_sums import spread
from noisescale.capture.sums.small_batches import SmallBatchSize
from noisescale.capture.watch_options import WatchOptions, watched_parameters
from noisescale_core.errors import ConfigError

# P parameters

MIN_COVERED = 0.9
"""Share of a model's elements from which its per-example norms may stand for it unasked."""


# Makes each example of a backward a small batch: per-example norms in the order of the watched parameters.


class ExampleSource:
    """Per-example norms of the parameters that have them.

    Args:
        model: Its input has the examples in the first dimension.
        parameters: Trainable ones by name.
        layers: All, or the normalisations only.
        on_fault: Told about our own faults inside hooks.
        min_covered: Share of the elements of all parameters that must stay measured.
        fused_norm_layers: Replace the backward of the normalisations by one that gives the norms, too.
        duty: What is told how long hooks take while it times steps.

    Attributes:
        parameters: Those measured, by name.
        message: What is left out, why, and what to do about it; None where nothing is.
        dropped: Indices of those that turned out to be used elsewhere, too; they are left out since.
        is_refused: Less than `min_covered` is left of it.

    Raises:
        ConfigError: If not one parameter can be measured.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, Tensor],
        layers: Layers,
        *,
        on_fault: Callable[[Exception], None],
        min_covered: float = 0.0,
        fused_norm_layers: bool = False,
        duty: Callable[[], DutyCycle | None] = lambda: None,
    ) -> None:
        self._norms = PerExampleNorms(
            model,
            parameters,
            on_fault=on_fault,
            layers=layers,
            fused_norm_layers=fused_norm_layers,
            joins_forwards=True,
            duty=duty,
        )
        if not self._norms.covered:
            self._norms.remove()
            raise ConfigError(self._norms.message or "per-example norms need a layer with parameters")
        self.parameters = {name: parameters[name] for name in self._norms.covered}
        self.message = self._norms.message
        self.dropped: list[int] = []
        self.is_refused = False
        self._num_elements = sum(p.numel() for p in parameters.values())
        self._min_covered = min_covered
        self._index_of = {name: index for index, name in enumerate(self.parameters)}

    @property
    def reason(self) -> str | None:
        """Why the last backward could not be taken apart; None where it could."""
        return self._norms.reason

    def pause(self, is_paused: bool) -> None:
        """Leave backward passes out from here on, or no longer."""
        self._norms.pause(is_paused)

    def hold(self, is_holding: bool) -> None:
        """Add backward passes up from here on, or no longer."""
        self._norms.hold(is_holding)

    def clear(self) -> None:
        """Forget what was captured."""
        self._norms.clear()

    def see_gradient(self, index: int, gradient: Tensor) -> None:
        """The per-example norms have hooks of their own."""

    def take(self) -> list[tuple[Tensor, SmallBatchSize]]:
        """Σ |s_i|² of each parameter over the examples of the last small batch, [P], and their number, as one entry.

        Examples of forwards of the same size are one small batch, pair by pair.

        Empty where there was no backward, or it could not be taken apart.
        """
        taken = self._norms.take()
        covered = self._norms.covered
        if len(covered) + len(self.dropped) < len(self._index_of):
            self.dropped = [index for name, index in self._index_of.items() if name not in covered]
            self.message = self._norms.message
            self._look_at_share()
        if taken is None:
            return []
        sq_norm_N, num_small = taken
        sq_norm_P = spread([([self._index_of[name] for name in covered], sq_norm_N)], len(self._index_of))
        return [(sq_norm_P, SmallBatchSize(self._norms.num_taken, num_small=num_small))]

    @property
    def covered_share(self) -> float:
        """Elements that are measured ÷ all."""
        return sum(self.parameters[name].numel() for name in self._norms.covered) / self._num_elements

    def _look_at_share(self) -> None:
        """Give up where too little is left to stand for the model."""
        share = self.covered_share
        self.is_refused = share < self._min_covered
        if self.is_refused:
            self.message = (
                f"per-example norms can be had of {100 * share:.0f} % of the model's elements only, so they do not "
                f"stand for it any more; small_batches='per_example' measures that part. {self.message}"
            )

    def remove(self) -> None:
        """Take every hook off."""
        self._norms.remove()


class ChosenSource:
    """The source of small batches in use, and the one that takes over at the end of the step.

    Args:
        model: Whose gradients are measured.
        optimizer: Holds the parameters that are trained; None: all that require a gradient are.
        options: Checked.
        on_fault: Told about our own faults inside hooks.
        duty: Which steps are measured, as it is now.

    Attributes:
        source: Takes each backward apart; None: it is one small batch.
        estimator: Where the small batches come from, in the words of the wire format.
        says: The same as a sentence for the log.
        takes_examples: Each example is a small batch from the next step on, or is one already.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None,
        options: WatchOptions,
        *,
        on_fault: Callable[[Exception], None],
        duty: Callable[[], DutyCycle],
    ) -> None:
        self._model = model
        self._optimizer = optimizer
        self._options = options
        self._on_fault = on_fault
        self._duty = duty
        self.source: GradientSource | None = None
        self._next: ExampleSource | None = None
        self._use("micro_batches", None)

    def _use(self, estimator: str, source: GradientSource | None) -> None:
        self.source, self.estimator, self.says = source, estimator, SENTENCES[estimator]
        self.takes_examples = self._may_take_examples = False
        self._num_dropped = 0

    def begin(self, parameters: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Choose by the options.

        Returns:
            Those that are measured.

        Raises:
            ConfigError: Where the model has not what the options name.
        """
        self.remove()
        options = self._options
        self._use("micro_batches", None)
        if options.small_batches in ("per_example", "layer_norm_proxy"):
            if is_sharded(self._model):
                raise ConfigError(f"small_batches={options.small_batches!r} needs whole layers: leave it out with FSDP")
            layers: Layers = "all" if options.small_batches == "per_example" else "norm_layers"
            examples = ExampleSource(
                self._model,
                parameters,
                layers,
                on_fault=self._on_fault,
                fused_norm_layers=options.fused_norm_layers,
                duty=self._duty,
            )
            self._use(options.small_batches, examples)
            return examples.parameters
        if options.split is not None:
            self._use("split", Split(self._model, parameters, options.split, on_fault=self._on_fault))
        is_as_found = options.split is None and options.accumulate == "autograd" and not options.kinds
        self._may_take_examples = options.small_batches == "auto" and is_as_found
        return parameters

    def share_with_ranks(self, num_ranks: int, *, is_by_rank: bool) -> None:
        """The ranks of a data-parallel job are small batches, too."""
        self._may_take_examples = False
        if self.source is None:
            self.estimator = "ranks" if is_by_rank else "ranks_and_micro_batches"
        self.says = f"{SENTENCES[self.estimator]}, of {num_ranks} ranks"

    def look_for_examples(self, num_small_batches: int, *, are_coupled: bool) -> None:
        """After the first step: where it had a single small batch, see whether its examples can be told apart."""
        if not self._may_take_examples or not num_small_batches:
            return
        self._may_take_examples = False
        if num_small_batches != 1 or are_coupled:
            return
        parameters = watched_parameters(self._model, self._optimizer)
        try:
            examples = ExampleSource(
                self._model, parameters, "all", on_fault=self._on_fault, min_covered=MIN_COVERED, duty=self._duty
            )
        except ConfigError:
            return
        if examples.covered_share >= MIN_COVERED:
            self._next = examples
            self.takes_examples = True
        else:
            examples.remove()

    def turn_to_examples(self) -> Mapping[str, Tensor] | None:
        """Take the examples that were found: the parameters that are measured; None where none were."""
        examples, self._next = self._next, None
        if examples is None:
            return None
        self._use("per_example", examples)
        self.takes_examples = True
        return examples.parameters

    def give_up(self) -> bool:
        """From here on each backward is a small batch, if the model turned out to be none to take apart."""
        if self.source is None or not self.source.is_refused:
            return False
        self.remove()
        self._use("micro_batches", None)
        return True

    def has_news(self) -> bool:
        """Whether parameters were left out since this was asked."""
        num_dropped = 0 if self.source is None else len(self.source.dropped)
        has_changed, self._num_dropped = num_dropped != self._num_dropped, num_dropped
        return has_changed

    def pause(self, is_paused: bool) -> None:
        """Leave what comes out from here on, or no longer."""
        if self.source is not None:
            self.source.pause(is_paused)

    def hold(self, is_holding: bool) -> None:
        """Add up what backward passes through the same forward bring from here on, or no longer."""
        if self.source is not None:
            self.source.hold(is_holding)

    @property
    def covered_share(self) -> float:
        """Elements that are measured ÷ all."""
        return self.source.covered_share if isinstance(self.source, ExampleSource) else 1.0

    def messages(self) -> list[str]:
        """What the measurement leaves out or changes, as notes."""
        return [] if self.source is None or self.source.message is None else [self.source.message]

    def remove(self) -> None:
        """Leave nothing on the model."""
        for source in (self.source, self._next):
            if source is not None:
                source.remove()
        self._next = None
