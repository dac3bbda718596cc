"""Which forwards a backward has come through: their examples are those of its small batch.

A forward may serve other ends than the step's gradient: an attack on the inputs, a saliency map, a count of right
answers. What never reaches a parameter's gradient is no example of the step.
"""

from collections.abc import Callable, Iterator, Mapping

from torch import Tensor, nn

MAX_DEPTH = 3
"""How deep in a model's output tensors are looked for."""


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
