"""What a layer type must say to be measured; each has a file of its own, `registry.py` lists them."""

# L leading dimension of a layer's input: B examples of m rows, B contributions, T positions, D elements

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from noisescale.capture.per_example.contributions import Contribution, SummedTerms
from noisescale.capture.per_example.replayed_calls import ExampleDims
from noisescale.kernels.preference import Kernels


class Contribute(Protocol):
    """A layer's contribution to one of its parameters, from one call."""

    def __call__(
        self, module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
    ) -> Contribution:
        """The contribution, which reads activation and output gradient when its norm is taken.

        Args:
            module: The layer.
            name: Its own name of the parameter.
            activation: Its input [L, ...]; may be None for a parameter that does not multiply it.
            grad_output: Gradient of the loss with respect to its output, in the output's shape.
            num_examples: B; L is a multiple of it, and the rows of an example are adjacent.
        """


class SqNorms(Protocol):
    """A layer's per-example norms from one pass over a call, by a kernel."""

    def __call__(
        self, module: nn.Module, activation: Tensor, grad_output: Tensor, num_examples: int, kernels: Kernels
    ) -> dict[str, Tensor]:
        """|s_i|² of each parameter that the layer has, by the layer's own name, [B] fp64; empty where no kernel runs.

        Args:
            module: The layer.
            activation: Its input [L, ...].
            grad_output: Gradient of the loss with respect to its output, in the output's shape.
            num_examples: B, as of `Contribute`.
            kernels: Whose may be taken.
        """


@dataclass(frozen=True, slots=True)
class InnerUse:
    """One use of a parameter inside a layer's call, where the layer calls no other for it.

    Attributes:
        parameter: The layer's own name of it.
        node: Of the autograd graph; the gradient with respect to its output belongs to the use.
        rows: An operand of the call, with its history and the examples first.
        activation: What a weight multiplies, examples first; None of a bias.
        arrange: Puts the examples of that gradient first, [B, T, O].
    """

    parameter: str
    node: Any
    rows: Tensor
    activation: Tensor | None
    arrange: Callable[[Tensor], Tensor]


class InnerUses(Protocol):
    """The uses inside a call of a layer."""

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Iterable[InnerUse]:
        """What was used where.

        Args:
            module: The layer.
            args: Of the call.
            kwargs: Of the call.
            output: Of the call.
        """


def never_refused(module: nn.Module) -> str | None:
    """No setting of this layer stands in the way."""
    return None


@dataclass(frozen=True, slots=True)
class LayerRule:
    """How a layer type contributes to the gradients of its parameters.

    Attributes:
        parameters: Names that have a formula; all others of the layer are left out. None: none is.
        contribute: The formula; None: the call is run again.
        shape: Of a parameter as the formula sees it: [K, O, I] or [D].
        num_feature_dimensions: Dimensions of the input that belong to the features of one row.
        is_rounded_like_output: Autocast rounds the input to the output's precision before it multiplies.
        is_norm: One of the normalisations whose noise scale stands for the model's.
        sq_norms: A shorter way to the norms of a call that is a parameter's only one; None: there is none.
        inner_uses: Where the parameters are used inside a call; None: by the call itself, on its first input.
        example_dims: Of a layer whose call is run again.
        refusal: The setting that stands in the way, as the end of "switch off …"; None: none does.
    """

    parameters: tuple[str, ...] | None
    contribute: Contribute | None
    shape: Callable[[nn.Module, str], tuple[int, ...]]
    num_feature_dimensions: Callable[[nn.Module], int]
    is_rounded_like_output: bool = False
    is_norm: bool = False
    sq_norms: SqNorms | None = None
    inner_uses: InnerUses | None = None
    example_dims: Callable[[nn.Module], ExampleDims] = lambda module: ExampleDims()
    refusal: Callable[[nn.Module], str | None] = never_refused


def vector_shape(module: nn.Module, name: str) -> tuple[int, ...]:
    """[D]: of a parameter that counts as a vector."""
    return (module.get_parameter(name).numel(),)


def sum_of_gradients(grad_output: Tensor, num_examples: int) -> SummedTerms:
    """The contribution to a bias: its features come last in the output gradients [L, ..., D]."""
    grad_output_BTD = grad_output.reshape(num_examples, -1, grad_output.shape[-1])
    return SummedTerms(
        num_examples=num_examples,
        num_positions=grad_output_BTD.shape[1],
        num_elements=grad_output_BTD.shape[2],
        dtype=grad_output.dtype,
        terms=lambda start, stop: grad_output_BTD[start:stop],
    )
