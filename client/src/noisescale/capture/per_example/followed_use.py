"""What each example adds to a parameter that is no layer's, by a step of the autograd graph that meets the examples."""

# B examples, b groups of examples, T tokens of a lookup, D features, O outputs, I inputs, N = B m rows

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from noisescale.capture.per_example.contributions import Contribution, TokenRows, WholeGradients
from noisescale.capture.per_example.layers.layer_rule import sum_of_gradients
from noisescale.capture.per_example.layers.linear import products_of_rows

Step = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Spread:
    """A step that spreads what was made of the parameter over the examples.

    Attributes:
        whole: Shape of the parameter.
        operand: Shape of what is spread.
        of_operand: From the gradient at the step's result to that at the operand, not added up over anything yet.
        arranging: Steps of the graph from the operand back to the parameter, or to the lookup in it.
        token: What was looked up; None: nothing was.
        padding: A token whose row gets no gradient; one that is none: all get some.
    """

    whole: tuple[int, ...]
    operand: tuple[int, ...]
    of_operand: Step
    arranging: tuple[Step, ...]
    token: Tensor | None
    padding: int

    def contribution(self, grad_output_B: Tensor, num_groups: int) -> Contribution:
        """From b groups of examples, a whole gradient or the rows that were looked up."""
        gradient_b = _grouped(_added_up(self.of_operand(grad_output_B), self.operand), num_groups)
        if self.token is None:
            return WholeGradients(
                num_examples=num_groups,
                num_elements=math.prod(self.whole),
                dtype=grad_output_B.dtype,
                gradients=lambda start, stop: self._taken_back(gradient_b[start:stop]),
            )
        token_bT = self.token.reshape(1, -1).expand(num_groups, -1)
        row_bTD = self._taken_back(gradient_b).reshape(num_groups, self.token.numel(), -1)
        row_bTD = row_bTD.masked_fill((token_bT == self.padding).unsqueeze(2), 0)
        return TokenRows(num_groups, token_bT, row_bTD, self.whole[0])

    @property
    def is_whole(self) -> bool:
        """Whether its contributions are whole gradients."""
        return self.token is None

    def _taken_back(self, gradient_b: Tensor) -> Tensor:
        for step in self.arranging:
            gradient_b = torch.vmap(step)(gradient_b)
        return gradient_b


@dataclass(frozen=True, slots=True)
class Lookup:
    """Each example looks up rows of its own.

    Attributes:
        token_BT: Which.
        padding: As of `Spread`.
        num_rows: Of the table.
    """

    token_BT: Tensor  # noqa: N815
    padding: int
    num_rows: int
    is_whole: ClassVar[bool] = False

    def contribution(self, grad_output_B: Tensor, num_groups: int) -> Contribution:
        """As of an embedding."""
        token_bT = self.token_BT.reshape(num_groups, -1)
        row_bTD = grad_output_B.reshape(*token_bT.shape, -1)
        return TokenRows(
            num_groups, token_bT, row_bTD.masked_fill((token_bT == self.padding).unsqueeze(2), 0), self.num_rows
        )


@dataclass(frozen=True, slots=True)
class Product:
    """A product of rows that are examples, one or several adjacent ones, with the parameter.

    Attributes:
        rows_NI: What it multiplies.
        is_turned: The parameter is [O, I], and not [I, O].
    """

    rows_NI: Tensor  # noqa: N815
    is_turned: bool
    is_whole: ClassVar[bool] = False

    def contribution(self, grad_output_NO: Tensor, num_groups: int) -> Contribution:
        """As of a linear layer."""
        factors = (grad_output_NO, self.rows_NI) if self.is_turned else (self.rows_NI, grad_output_NO)
        return products_of_rows(*factors, num_groups)


@dataclass(frozen=True, slots=True)
class Bias:
    """A vector that is added to rows that are examples, one or several adjacent ones."""

    is_whole: ClassVar[bool] = True

    def contribution(self, grad_output_NO: Tensor, num_groups: int) -> Contribution:
        """As of a linear layer's bias, but in the form that vectors which are spread have, too."""
        of_rows = sum_of_gradients(grad_output_NO, num_groups)
        return WholeGradients(
            num_examples=num_groups,
            num_elements=of_rows.num_elements * of_rows.num_positions,
            dtype=of_rows.dtype,
            gradients=lambda start, stop: of_rows.terms(start, stop).sum(1),
        )


@dataclass(slots=True)
class FollowedUse:
    """A use of a parameter: to it what a call is to the parameters of a layer.

    Attributes:
        parameter: Its name.
        form: How its contribution is made.
        kept: What the form was given of the forward's tensors.
        is_late: Never: there is one gradient.
    """

    parameter: str
    form: Spread | Lookup | Product | Bias
    kept: Sequence[Tensor] = ()
    is_late: bool = False
    _versions: list[int] = field(init=False)
    _grad_output: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Remember what the kept tensors were."""
        self._versions = [tensor._version for tensor in self.kept]

    @property
    def is_overwritten(self) -> bool:
        """Whether a kept tensor was changed in place since the forward."""
        return self._versions != [tensor._version for tensor in self.kept]

    def has_examples(self, num_examples: int | None) -> bool:
        """It has them, or it would not have been taken for a use."""
        return True

    def contradicts(self, num_examples: int) -> bool:
        """It says nothing of the model's input."""
        return False

    def take_gradient(self, grad_output: Tensor) -> None:
        """Keep the gradient with respect to the result of the step."""
        self._grad_output = grad_output.detach()

    def contribution(self, name: str, num_groups: int, *, is_alone: bool) -> Contribution:
        """From b groups of examples."""
        return self.form.contribution(self._grad_output, num_groups)


def _added_up(gradient: Tensor, operand: tuple[int, ...]) -> Tensor:
    """[B, ...] with the operand's shape behind it: the sum over all that it was spread over but the examples."""
    shape = (1,) * (gradient.dim() - len(operand)) + operand
    spread = [dim for dim in range(1, gradient.dim()) if shape[dim] == 1 and gradient.shape[dim] != 1]
    return (gradient.sum(spread) if spread else gradient).reshape(len(gradient), *operand)


def _grouped(gradient_B: Tensor, num_groups: int) -> Tensor:
    return gradient_B if len(gradient_B) == num_groups else gradient_B.unflatten(0, (num_groups, -1)).sum(1)
