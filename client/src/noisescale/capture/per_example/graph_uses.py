"""Where a parameter that is no layer's meets the examples: found in the autograd graph of a forward.

A table of positions, a learned scale, a class token: such a parameter has one value for all examples until a step
spreads it over them. The gradient at that step still has the examples in front, and autograd adds them up only behind
it. Nothing of the program is run, and nothing of its graph is changed. See docs/decisions/0029.
"""

# B examples

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from noisescale.capture.per_example.example_rows import LOOKUP, OF_WEIGHTS, Turns, is_without_front, rows_an_example
from noisescale.capture.per_example.followed_use import Bias, FollowedUse, Lookup, Product, Spread, Step

SPREADING = {
    "AddBackward0": (),
    "SubBackward0": (),
    "MulBackward0": ("_raw_saved_self", "_raw_saved_other"),
    "DivBackward0": ("_raw_saved_self", "_raw_saved_other"),
    "ExpandBackward0": (),
    "RepeatBackward0": (),
}
"""Steps of the graph that may spread an operand over the examples, and what they keep for their backward."""

REPEATING = ("ExpandBackward0", "RepeatBackward0")

ARRANGING = (
    "AliasBackward0",
    "CloneBackward0",
    "ExpandBackward0",
    "PermuteBackward0",
    "ReshapeAliasBackward0",
    "SelectBackward0",
    "SliceBackward0",
    "SqueezeBackward0",
    "SqueezeBackward1",
    "TBackward0",
    "ToCopyBackward0",
    "TransposeBackward0",
    "UnsafeViewBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
)
"""Steps that put elements elsewhere and keep nothing but sizes, so that they can be gone back at any time."""

PRODUCTS = {"AddmmBackward0": (2, "_raw_saved_mat1"), "MmBackward0": (1, "_raw_saved_self")}
"""Which operand of a product is its weight, and where the graph keeps what it multiplies."""

TURNING = ("TBackward0", "TransposeBackward0")

HIDDEN = "checkpointing, or other hooks on saved tensors, hide what it meets"

NO_FORMULA = "used by {}, which has no formula here"

NO_GRAPH = "this version of PyTorch does not show the shapes in its graph"

SEVERAL_WAYS = "used in ways that are not added up here"

NO_ROWS = "it meets rows that may not be examples in order"


@dataclass(slots=True)
class Graph:
    """The steps of a forward, each with those that use it.

    Attributes:
        users: Of each step: a later one, which of its operands that is, and which output of the step.
        leaves: Steps that end in a parameter that is looked for, by its name.
    """

    users: dict[Any, list[tuple[Any, int, int]]] = field(default_factory=dict)
    leaves: dict[str, Any] = field(default_factory=dict)


class RefusedError(Exception):
    """A use of a parameter that cannot be taken apart; the message says which."""


def find_uses(
    outputs: Iterable[Tensor], parameters: Mapping[str, Tensor], num_examples: int, turns: Turns
) -> tuple[list[tuple[Any, FollowedUse]], dict[str, str]]:
    """All uses of some parameters in a forward, and why others have none.

    Args:
        outputs: Of the forward, with their history.
        parameters: By name.
        num_examples: B, above one.
        turns: Of this forward.

    Returns:
        The uses of those that have only such as can be taken apart, each with the step whose gradient it wants; of the
        others a clause by name.
    """
    graph = _walked(outputs, {id(parameter): name for name, parameter in parameters.items()})
    if any(not hasattr(leaf, "_input_metadata") for leaf in graph.leaves.values()):
        return [], dict.fromkeys(graph.leaves, NO_GRAPH)
    shared = _shared_steps(graph, num_examples)
    uses: list[tuple[Any, FollowedUse]] = []
    refused: dict[str, str] = {}
    for name, leaf in graph.leaves.items():
        try:
            found = list(_Search(graph, shared, num_examples, turns, name, leaf).above(leaf))
            if len({use.form.is_whole for _, use in found}) > 1:
                raise RefusedError(SEVERAL_WAYS)
            uses += found
        except RefusedError as reason:
            refused[name] = str(reason)
    return uses, refused


def _walked(outputs: Iterable[Tensor], names: Mapping[int, str]) -> Graph:
    graph = Graph()
    to_see = [output.grad_fn for output in outputs if output.grad_fn is not None]
    seen = set(to_see)
    while to_see:
        node: Any = to_see.pop()
        variable = getattr(node, "variable", None)
        if id(variable) in names:
            graph.leaves[names[id(variable)]] = node
        for place, (before, output_nr) in enumerate(node.next_functions):
            if before is None:
                continue
            graph.users.setdefault(before, []).append((node, place, output_nr))
            if before not in seen:
                seen.add(before)
                to_see.append(before)
    return graph


def _shared_steps(graph: Graph, num_examples: int) -> set[Any]:
    """Steps whose result all examples meet alike: their first dimension never counts examples.

    It may be as long as there are examples: a table of as many positions, a weight with as many outputs.
    """
    to_see = [
        before
        for before, users in graph.users.items()
        if any(
            place in OF_WEIGHTS.get(node.name(), ()) or _spreads(node, _shape(before, output_nr), num_examples)
            for node, place, output_nr in users
        )
    ]
    shared = set(to_see)
    while to_see:
        for before, _ in to_see.pop().next_functions:
            if before is not None and before not in shared:
                shared.add(before)
                to_see.append(before)
    return shared


def _has_data(node: Any) -> bool:
    """Whether anything but parameters is behind a step."""
    to_see, seen = [node], set()
    while to_see:
        step = to_see.pop()
        is_leaf = hasattr(step, "variable")
        if step is None or step.name() == LOOKUP or (is_leaf and not isinstance(step.variable, nn.Parameter)):
            return True
        if step not in seen and not is_leaf:
            seen.add(step)
            to_see += [before for before, _ in step.next_functions]
    return False


def _spreads(node: Any, operand: Sequence[int], num_examples: int) -> bool:
    """Whether the result of a step has the examples in its first dimension, and an operand of this shape has not."""
    if node.name() not in SPREADING:
        return False
    result = _shape(node, 0)
    if not result or result[0] != num_examples:
        return False
    return is_without_front(operand, result)


def _shape(node: Any, output_nr: int) -> tuple[int, ...]:
    return tuple(node._input_metadata[output_nr].shape)


@dataclass(frozen=True, slots=True)
class _Search:
    """For the uses of one parameter, from its own step upwards."""

    graph: Graph
    shared: set[Any]
    num_examples: int
    turns: Turns
    name: str
    leaf: Any

    def above(
        self, before: Any, arranging: tuple[Any, ...] = (), lookup: Any = None
    ) -> Iterator[tuple[Any, FollowedUse]]:
        """Those of what a step has made of the parameter.

        Raises:
            RefusedError: One of them cannot be taken apart.
        """
        for node, place, output_nr in self.graph.users.get(before, ()):
            kind, operand = node.name(), _shape(before, output_nr)
            if node not in self.shared and _spreads(node, operand, self.num_examples) and self._meets_data(node):
                yield node, self._spread(node, place, operand, arranging, lookup)
            elif kind in ARRANGING:
                yield from self.above(node, (node, *arranging), lookup)
            elif kind == LOOKUP and before is self.leaf and not node._saved_scale_grad_by_freq:
                if node not in self.shared and _shape(node, 0)[0] == self.num_examples:
                    yield node, self._lookup(node)
                else:
                    yield from self.above(node, (), node)
            elif kind in PRODUCTS and node not in self.shared and lookup is None:
                yield node, self._product(node, place, arranging)
            else:
                raise RefusedError(NO_FORMULA.format(kind.removesuffix("Backward0")))

    def _meets_data(self, node: Any) -> bool:
        """Whether the result of a step is of examples, not of parameters alone; what is repeated may meet them."""
        to_see, seen = [node], {node}
        while to_see:
            step = to_see.pop()
            if _has_data(step):
                return True
            if node.name() in REPEATING:
                later = {user for user, _, _ in self.graph.users.get(step, ())} - seen
                seen |= later
                to_see += later
        return False

    def _spread(
        self, node: Any, place: int, operand: tuple[int, ...], arranging: tuple[Any, ...], lookup: Any
    ) -> FollowedUse:
        if self.num_examples in _shape(node, 0)[1:] and self.turns.has_turned(node):
            raise RefusedError(NO_ROWS)
        pairs = zip(reversed(operand), reversed(_shape(node, 0)), strict=False)
        if any(of_one not in (1, of_all) for of_one, of_all in pairs):
            raise RefusedError(NO_FORMULA.format(node.name().removesuffix("Backward0")))
        kept = [_read(node, saved) for saved in SPREADING[node.name()]]
        token = None if lookup is None else _read(lookup, "_raw_saved_indices")
        padding = -1 if lookup is None else int(lookup._saved_padding_idx)
        whole = tuple(self.leaf.variable.shape)
        form = Spread(whole, operand, _of_operand(node, place, kept), arranging, token, padding)
        return FollowedUse(self.name, form, [tensor for tensor in (*kept, token) if tensor is not None])

    def _lookup(self, node: Any) -> FollowedUse:
        token_B = _read(node, "_raw_saved_indices")
        assert token_B is not None
        form = Lookup(token_B.flatten(1), int(node._saved_padding_idx), len(self.leaf.variable))
        return FollowedUse(self.name, form, [token_B])

    def _product(self, node: Any, place: int, arranging: tuple[Any, ...]) -> FollowedUse:
        of_weight, saved = PRODUCTS[node.name()]
        turns = [step.name() for step in arranging]
        rows = _read(node, saved, has_history=True) if place == of_weight else None
        if place == 0 and node.name() == "AddmmBackward0" and not turns and self.leaf.variable.dim() == 1:
            rows = self._rows_of_bias(node)
        elif rows is None or len(turns) > 1 or any(turn not in TURNING for turn in turns):
            raise RefusedError(NO_FORMULA.format(node.name().removesuffix("Backward0")))
        is_turned = rows is not None and self.turns.has_turned(rows.grad_fn)
        if rows is None or is_turned or rows_an_example(rows, self.num_examples) is None:
            raise RefusedError(NO_ROWS)
        if place == 0:
            return FollowedUse(self.name, Bias())
        rows = rows.detach()
        return FollowedUse(self.name, Product(rows, bool(turns)), [rows])

    def _rows_of_bias(self, node: Any) -> Tensor | None:
        """What a product multiplies; None where its weight wants no gradient, so that it has not been kept."""
        return _read(node, PRODUCTS[node.name()][1], has_history=True)


def _read(node: Any, saved: str, *, has_history: bool = False) -> Tensor | None:
    """What a step has kept; None where it has not.

    Raises:
        RefusedError: Hooks stand between it and the graph, which may let it be read once.
    """
    raw = getattr(node, saved)
    if getattr(raw, "unpack_hook", "unknown") is not None:
        raise RefusedError(HIDDEN)
    tensor: Tensor | None = raw.data
    return tensor if tensor is None or has_history else tensor.detach()


def _of_operand(node: Any, place: int, kept: Sequence[Tensor | None]) -> Step:
    """From the gradient at a step's result to that at an operand, as the step's own backward has it.

    It holds no step: a hook on the step that did would keep the graph alive.
    """
    kind = node.name()
    if kind in ("MulBackward0", "DivBackward0"):
        first, second = kept
        if kind == "MulBackward0":
            other = second if place == 0 else first
            assert other is not None
            return lambda gradient: gradient * other
        assert second is not None
        if place == 0:
            return lambda gradient: gradient / second
        assert first is not None
        return lambda gradient: -gradient * (first / second / second)
    if kind in ("AddBackward0", "SubBackward0") and place == 1:
        factor = node._saved_alpha * (1 if kind == "AddBackward0" else -1)
        return lambda gradient: gradient * factor
    return lambda gradient: gradient
