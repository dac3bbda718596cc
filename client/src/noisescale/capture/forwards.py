"""The forwards of one optimizer step: which of them a backward came through, and whose examples it takes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from noisescale.capture.sums.small_batches import total_size

TWICE = (
    "two backward passes went through one forward: add the losses and call backward() once, or put both passes into "
    "`with run.micro_batch():`; where they hold different examples, each into one with their number"
)

UNPAIRED = "several forwards came before it, and none of them was followed yet; from the next step on each is"

MAX_DEPTH = 3
"""How deep in a model's output tensors are looked for."""

NUM_REGULAR_STEPS = 4
"""Steps after which forwards are no longer followed, where each backward came through the one forward before it."""


# How many examples a small batch has, as far as its forwards tell.


class Examples(NamedTuple):
    """The examples of a small batch.

    Attributes:
        num: None where the forwards do not tell.
        reason: Why the step has no estimate, or no batch size of its own; None where it may have both.
        adds_up: The gradient may be the sum of small batches with sizes, given a batch size.
    """

    num: float | None
    reason: str | None = None
    adds_up: bool = True


COUNTED_BEFORE = Examples(0.0, TWICE, adds_up=False)


def of_unpaired(sizes: Sequence[float | None]) -> Examples:
    """Of a small batch that came through some of these forwards: a given batch size is spread evenly if all are equal.

    Args:
        sizes: Of the forwards.
    """
    return Examples(None, UNPAIRED, adds_up=len(set(sizes)) == 1)


# Which forwards a backward has come through: their examples are those of its small batch.
#
# A forward may serve other ends than the step's gradient: an attack on the inputs, a saliency map, a count of right
# answers. What never reaches a parameter's gradient is no example of the step.


class FollowedForward:
    """A forward pass with gradients enabled.

    Attributes:
        num_examples: None where its input does not tell.
        is_probed: An input is a leaf that asks for a gradient, as that of a gradient penalty.
    """

    __slots__ = ("is_probed", "num_examples")

    def __init__(self, num_examples: float | None) -> None:
        self.num_examples = num_examples
        self.is_probed = False


class FollowedForwards:
    """Hooks on the outputs of forwards that note each backward which comes through."""

    def __init__(self, current_task: Callable[[], int]) -> None:
        self._current_task = current_task
        self._task = -1
        self._forwards: list[FollowedForward] = []

    def follow(self, forward: FollowedForward, inputs: object, output: object) -> None:
        """Note each backward that comes through this output.

        Args:
            forward: Whose output it is.
            inputs: What the model was called with.
            output: Tensors in it that carry a gradient are followed.
        """
        forward.is_probed = any(tensor.requires_grad and tensor.is_leaf for tensor in tensors_of(inputs))

        def come_through(_: object) -> None:
            task = self._current_task()
            if task != self._task:
                self._task, self._forwards = task, []
            if forward not in self._forwards:
                self._forwards.append(forward)

        if type(output) is Tensor:  # most often, and then half of the time
            if output.grad_fn is not None:
                output.grad_fn.register_prehook(come_through)
            return
        for tensor in tensors_of(output):
            if tensor.grad_fn is not None:
                tensor.grad_fn.register_prehook(come_through)

    def of_task(self, task: int) -> list[FollowedForward]:
        """The forwards that a backward has come through so far; none where it took other ways."""
        return self._forwards if task == self._task else []


def tensors_of(output: object, depth: int = MAX_DEPTH) -> Iterator[Tensor]:
    """The tensors in what a model takes or returns, in sequences, mappings and objects with attributes."""
    if isinstance(output, Tensor):
        yield output
    elif depth and not isinstance(output, str | bytes | nn.Module):
        if isinstance(output, Mapping):
            inner = list(output.values())
        elif isinstance(output, list | tuple):
            inner = list(output)
        else:
            inner = list(getattr(output, "__dict__", {}).values())
        for one in inner:
            yield from tensors_of(one, depth - 1)


class Pairing:
    """Whether each backward comes through the one forward before it: then their order tells whose examples it takes.

    To follow a forward takes 40 µs, in the forward and in the backward. So each is followed in the first steps, and for
    good once a backward came through other forwards, or there were several for it to come through.

    Attributes:
        is_following: Forwards are followed in this step.
    """

    def __init__(self) -> None:
        self.is_following = NUM_REGULAR_STEPS > 0
        self._is_regular = True
        self._num_steps = 0
        self._has_backwards = False
        self._num_waiting = 0
        self._newest: FollowedForward | None = None

    def see_forward(self, forward: FollowedForward) -> None:
        """Count a forward that a backward may come through."""
        self._num_waiting += 1
        self._newest = forward

    def end_backward(self, reached: Sequence[FollowedForward]) -> Sequence[FollowedForward] | None:
        """The forwards that a backward has come through; none where it took other ways, None where that is not known.

        Args:
            reached: Those that it was seen to come through.
        """
        num_forwards, self._num_waiting = self._num_waiting, 0
        newest = [] if self._newest is None else [self._newest]
        self._has_backwards = True
        self._is_regular &= num_forwards == 1 and (not reached or list(reached) == newest)
        if self.is_following:
            return reached
        return None if num_forwards > 1 else newest

    def end_step(self) -> None:
        """Decide whether forwards are followed in the next step."""
        self._num_steps += self._has_backwards
        self.is_following = not self._is_regular or self._num_steps < NUM_REGULAR_STEPS
        self._has_backwards = False
        self._num_waiting, self._newest = 0, None

    def follow_for_good(self) -> None:
        """Somebody else has seen a backward that does not come through the one forward before it."""
        self._is_regular, self.is_following = False, True


class StepForwards:
    """Forwards since the last small batch, and those that its backward passes have come through.

    Args:
        pairing: What is known of forwards and backward passes from before.

    Attributes:
        pairing: The same.
        is_known: It is known which forwards the backward passes since the last small batch came through.
    """

    def __init__(self, pairing: Pairing) -> None:
        self.pairing = pairing
        self.start_step()
        self.clear()

    def start_step(self) -> None:
        """Forget what the backward passes of a small batch have come through, and whose examples were counted."""
        self._reached: dict[FollowedForward, None] = {}
        self._counted: set[FollowedForward] = set()
        self.is_known = True

    def clear(self) -> None:
        """Forget forwards that no backward has followed."""
        self._is_training = False
        self._are_used = False
        self._forwards: list[FollowedForward] = []

    def use_up(self) -> None:
        """A backward that was none of the step's has come through: they count only if no others follow."""
        self._are_used = True

    def __len__(self) -> int:
        return len(self._forwards)

    def sizes(self) -> list[float | None]:
        """Examples of each forward since the last small batch."""
        return [forward.num_examples for forward in self._forwards]

    def drop(self, number: int) -> list[float | None]:
        """Take the first forwards off: their numbers of examples."""
        dropped, self._forwards = self._forwards[:number], self._forwards[number:]
        return [forward.num_examples for forward in dropped]

    def see(self, num_examples: float | None, *, is_training: bool, num_followed: int) -> FollowedForward:
        """Count the examples of a forward; see `Accumulation.see_forward`."""
        forward = FollowedForward(num_examples)
        self.pairing.see_forward(forward)
        if self._are_used:
            self.clear()
        if len(self._forwards) == num_followed:
            self._is_training = is_training
        elif self._is_training and not is_training:
            return forward
        elif is_training and not self._is_training:
            del self._forwards[num_followed:]
            self._is_training = True
        self._forwards.append(forward)
        return forward

    def end_backward(self, reached: Sequence[FollowedForward]) -> None:
        """Note the forwards that a backward of the small batch was seen to come through."""
        known = self.pairing.end_backward(reached)
        self.is_known &= known is not None
        self._reached.update(dict.fromkeys(known or ()))

    def take(self) -> Sequence[FollowedForward]:
        """Those that the small batch came through, or all since the last one where none was seen; then forget them."""
        reached, self._reached = list(self._reached) or self._forwards, {}
        return reached

    def were_counted(self, reached: Sequence[FollowedForward]) -> bool:
        """Whether the examples of all of them belong to a small batch of the step already."""
        return self._counted.issuperset(reached)

    def examples_of(self, reached: Sequence[FollowedForward]) -> Examples:
        """The examples of the small batch that came through these."""
        if not self._counted.isdisjoint(reached):
            return COUNTED_BEFORE
        if not self.is_known:
            return of_unpaired([forward.num_examples for forward in reached])
        return Examples(total_size([forward.num_examples for forward in whose_examples(reached)]))

    def count(self, reached: Sequence[FollowedForward]) -> None:
        """Their examples belong to a small batch now; the next one begins."""
        self._counted.update(reached)
        self.is_known = True
        self.clear()


def whose_examples(reached: Sequence[FollowedForward]) -> Sequence[FollowedForward]:
    """The forwards of one small batch that bring its examples: beside others, those of a penalty do not."""
    return [forward for forward in reached if not forward.is_probed] or reached
