"""Sees a model's layers being called: their inputs, and the gradients with respect to their outputs.

Nothing is kept here. A call is held by the autograd graph that it belongs to, and dies with it, so a forward that no
backward follows leaves nothing behind.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from noisescale.capture.per_example.coverage import MeasuredLayer
from noisescale.capture.per_example.example_rows import Turns, note_rows_in_order, rows_an_example
from noisescale.capture.per_example.followed_use import FollowedUse
from noisescale.capture.per_example.fused_norm_layers import REQUEST, SqNormRequest
from noisescale.capture.per_example.graph_uses import find_uses
from noisescale.capture.per_example.layers.replayed import FOLLOWED
from noisescale.capture.per_example.replayed_calls import ReplayedCall, Rows, data_of, detached, rows_in
from noisescale.kernels.preference import Kernels

Guard = Callable[[Callable[..., None]], Callable[..., None]]

NO_BACKWARD = -1
"""What torch calls the backward that runs while none does."""

current_graph_task = getattr(torch._C, "_current_graph_task_id", lambda: NO_BACKWARD)
"""Number of the backward that runs; a private name of torch that its own checkpointing rests on."""


class Forward:
    """One forward pass of the watched model.

    Attributes:
        number: Later forwards have higher ones.
        num_examples: Leading dimension of its first input tensor, looked for one level deep; None where there is none.
        storages: Memory of its input tensors.
        strides: The same with the strides of their first two dimensions.
        turns: Whether the first dimension was moved; empty after the forward.
        is_taken: The norms of its examples were handed out.
    """

    def __init__(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.number = number
        values = [*args, *kwargs.values()]
        inner = [list(value.values()) if isinstance(value, Mapping) else value for value in values]
        flat = [item for value in inner for item in (value if isinstance(value, list | tuple) else [value])]
        tensors = [item for item in flat if isinstance(item, Tensor) and item.dim() and item.layout == torch.strided]
        self.is_taken = False
        self.num_examples = tensors[0].shape[0] if tensors else None
        self.storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        self.strides = {(tensor.untyped_storage().data_ptr(), tensor.stride()[:2]) for tensor in tensors}
        self.turns = Turns()


class LayerCall:
    """One call of a layer.

    Attributes:
        layer: Which layer.
        forward: The forward pass of the model that it was part of; None if it was called from outside.
        activation: Its input; None where no covered parameter multiplies it, or where it cannot be measured.
        output_shape: Shape of its output; None: gradients come arranged, examples first.
        has_example_rows: Whether the first dimension of its input holds the forward's examples in order.
        request: What the layer's own backward is asked for, where it is ours.
        replay: What it takes to run the call again, or the use that stands for it; None where a formula is known.
    """

    __slots__ = (
        "_sq_norms",
        "_version",
        "activation",
        "forward",
        "has_example_rows",
        "layer",
        "output_shape",
        "replay",
        "request",
    )

    def __init__(
        self,
        layer: MeasuredLayer,
        forward: Forward | None,
        rows: Tensor,
        activation: Tensor | None,
        output_shape: Sequence[int] | None,
        request: SqNormRequest | None = None,
        replay: ReplayedCall | FollowedUse | None = None,
    ) -> None:
        """Take a call in.

        Args:
            layer: As above.
            forward: As above.
            rows: The input with its history, to see where its examples are.
            activation: What is kept of it.
            output_shape: As above.
            request: As above.
            replay: As above.
        """
        self.layer = layer
        self.forward = forward
        self.output_shape = output_shape
        self.request = request
        self.replay = replay
        self._sq_norms: tuple[int, dict[str, Tensor]] | None = None
        self.has_example_rows = forward is not None and (
            has_example_rows(layer, forward, rows) if replay is None else replay.has_examples(forward.num_examples)
        )
        self.activation = activation.detach() if self.has_example_rows and activation is not None else None
        self._version = None if self.activation is None else self.activation._version

    @classmethod
    def of_output(cls, layer: MeasuredLayer, forward: Forward | None, rows: Tensor, output: Tensor) -> "LayerCall":
        """A call of a layer that multiplies its first input itself."""
        kept = rows if "weight" in layer.parameters else None
        call = cls(layer, forward, rows, kept, output.shape, getattr(output.grad_fn, REQUEST, None))
        if call.activation is not None and layer.rule.is_rounded_like_output:
            call.activation = call.activation.to(output.dtype)
            call._version = call.activation._version
        if call.has_example_rows and forward is not None and forward.num_examples is not None:
            note_rows_in_order(output, forward.num_examples)
        return call

    @property
    def is_overwritten(self) -> bool:
        """Whether the input was changed in place since the call."""
        if self.replay is not None:
            return self.replay.is_overwritten
        return self.activation is not None and self.activation._version != self._version

    def known_sq_norms(
        self, task: int, grad_output: Tensor, num_examples: int, kernels: Kernels
    ) -> Mapping[str, Tensor]:
        """|s_i|² of the layer's parameters that a kernel finds in one pass, [B] fp64 each; empty where none does.

        Args:
            task: Number of the backward.
            grad_output: Gradient with respect to the output, in its shape.
            num_examples: B.
            kernels: Whose may be taken.
        """
        if self.request is not None:
            return self.request.sq_norms
        find = self.layer.rule.sq_norms
        if find is None or self.activation is None:
            return {}
        if self._sq_norms is None or self._sq_norms[0] != task:
            self._sq_norms = task, find(self.layer.module, self.activation, grad_output, num_examples, kernels)
        return self._sq_norms[1]


def has_example_rows(layer: MeasuredLayer, forward: Forward, activation: Tensor) -> bool:
    """Whether each example of the forward is one row, or adjacent rows, of a layer's input."""
    if forward.num_examples is None or activation.dim() <= layer.rule.num_feature_dimensions(layer.module):
        return False
    if rows_an_example(activation, forward.num_examples) is None or _has_turned(forward, activation):
        return False
    return activation.is_floating_point() or not _may_be_positions(forward, activation)


def _has_turned(forward: Forward, activation: Tensor) -> bool:
    """Whether another dimension than the examples' may have come to the front, where there are two as long."""
    if forward.num_examples not in activation.shape[1:]:
        return False
    if activation.grad_fn is not None:
        return forward.turns.has_turned(activation.grad_fn)
    first, second, *_ = activation.stride()
    storage = activation.untyped_storage().data_ptr()
    forward.turns.is_data_turned |= first != second and (storage, (second, first)) in forward.strides
    return forward.turns.is_data_turned


def _may_be_positions(forward: Forward, token_L: Tensor) -> bool:
    """Whether indices count positions and not examples, where there are as many of both.

    A table of positions is looked up once for all examples: by 0, 1, 2, … or by a square of distances.
    """
    if token_L.untyped_storage().data_ptr() in forward.storages:
        return False
    if token_L.dim() == 1:
        # Reads a few numbers back, for such layers only; wrong norms would be the alternative.
        return bool(torch.equal(token_L, torch.arange(len(token_L), dtype=token_L.dtype, device=token_L.device)))
    return token_L.dim() == 2 and token_L.shape[0] == token_L.shape[1]


class LayerCalls:
    """Hooks on a model and its layers that report each output gradient with its call.

    Attributes:
        is_single: The last forward had one example, so that no graph shows where parameters are spread over several.

    Args:
        model: Its forward passes are counted.
        layers: Whose calls are seen.
        guard: Wraps every hook body, so that nothing is raised into the training.
        see: Told a call and the gradient with respect to its output, within the backward pass.
        see_reentrant: Told that a backward runs through a forward that was made within another backward.
        refuse: Told the name of a followed parameter, and why its uses cannot be taken apart.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: list[MeasuredLayer],
        *,
        guard: Guard,
        see: Callable[[LayerCall, Tensor], None],
        see_reentrant: Callable[[], None],
        refuse: Callable[[str, str], None],
    ) -> None:
        self._guard, self._see, self._see_reentrant = guard, see, see_reentrant
        self._forward: Forward | None = None
        self._num_forwards = 0
        self._is_paused = False
        self.is_single = False
        self._followed: dict[str, Tensor] = {}
        self._model, self._refuse = model, refuse
        self._handles: list[RemovableHandle] = [
            model.register_forward_pre_hook(ModuleHook(model, guard(self._begin_forward)), with_kwargs=True),
            model.register_forward_hook(
                ModuleHook(model, guard(self._end_forward)), with_kwargs=True, always_call=True
            ),
        ]
        for layer in layers:
            hook = ModuleHook(layer.module, guard(self._hook_of(layer)))
            self._handles.append(layer.module.register_forward_hook(hook, with_kwargs=True, prepend=True))

    @property
    def is_paused(self) -> bool:
        """Whether calls are not seen."""
        return self._is_paused

    def pause(self, is_paused: bool) -> None:
        """See no calls from here on, or see them again."""
        self._is_paused = is_paused

    def remove(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._forward = None

    def _begin_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if current_graph_task() == NO_BACKWARD:
            self._num_forwards += 1
            self._forward = Forward(self._num_forwards, args, kwargs) if torch.is_grad_enabled() else None

    def _end_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if current_graph_task() != NO_BACKWARD:
            return
        forward, self._forward = self._forward, None
        if forward is not None:
            if self._followed and not self._is_paused:
                self._see_uses(forward, output)
            forward.turns.clear()

    def follow(self, name: str, parameter: Tensor) -> None:
        """Look for the uses of a parameter in the graph of each forward, not in the calls of layers."""
        self._followed[name] = parameter

    def _see_uses(self, forward: Forward, output: Any) -> None:
        self.is_single = forward.num_examples == 1
        if forward.num_examples is None or self.is_single:
            return
        outputs = [data_of(rows) for rows in rows_in(output)]
        uses, refused = find_uses(outputs, self._followed, forward.num_examples, forward.turns)
        for name, reason in refused.items():
            self._refuse(name, reason)
        for node, use in uses:
            layer = MeasuredLayer(use.parameter, self._model, FOLLOWED, {use.parameter: use.parameter})
            call = LayerCall(layer, forward, self._followed[use.parameter], None, None, replay=use)
            _on_node(node, 0, self._guard(_taken(self._see, call, use)))

    def _hook_of(self, layer: MeasuredLayer) -> Callable[..., None]:
        if layer.rule.inner_uses is not None:
            return self._inner_hook(layer)
        return self._replay_hook(layer) if layer.rule.contribute is None else self._layer_hook(layer)

    def _layer_hook(self, layer: MeasuredLayer) -> Callable[..., None]:
        def called(args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            if self._is_paused or not isinstance(output, Tensor) or output.grad_fn is None:
                return
            if current_graph_task() != NO_BACKWARD:
                # Checkpointing: only in its reentrant form does a backward run through what is made here.
                _on_gradient(output, self._guard(lambda gradient: self._see_reentrant()))
                return
            activation = args[0] if args else kwargs["input"]
            call = LayerCall.of_output(layer, self._forward, activation, output)
            _on_gradient(output, self._guard(lambda gradient: self._see(call, gradient)))

        return called

    def _replay_hook(self, layer: MeasuredLayer) -> Callable[..., None]:
        def called(args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            if self._is_paused or not torch.is_grad_enabled():
                return
            outputs = [(place, rows, data_of(rows)) for place, rows in enumerate(rows_in(output))]
            outputs = [(place, rows, data) for place, rows, data in outputs if data.grad_fn is not None]
            if current_graph_task() != NO_BACKWARD:
                for _, _, data in outputs:
                    _on_gradient(data, self._guard(lambda gradient: self._see_reentrant()))
                return
            replay = ReplayedCall(layer.module, args, kwargs, layer.rule.example_dims(layer.module))
            call = LayerCall(layer, self._forward, data_of(replay.first), None, None, replay=replay)
            for place, rows, data in outputs:
                seen = _kept(self._see, call, replay, place, detached(rows))
                _on_gradient_as_it_is(data, self._guard(seen))

        return called

    def _inner_hook(self, layer: MeasuredLayer) -> Callable[..., None]:
        find = layer.rule.inner_uses
        assert find is not None

        def called(args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            if self._is_paused or not torch.is_grad_enabled() or current_graph_task() != NO_BACKWARD:
                return
            for use in find(layer.module, args, kwargs, output):
                if use.parameter in layer.parameters:
                    of_one = replace(layer, parameters={use.parameter: layer.parameters[use.parameter]})
                    call = LayerCall(of_one, self._forward, use.rows, use.activation, None)
                    _on_node(use.node, 0, self._guard(_arranged(self._see, call, use.arrange)))

        return called


def _on_gradient(output: Tensor, see: Callable[[Tensor], None]) -> None:
    """Call with the gradient with respect to an output, when a backward comes by.

    The output of a linear layer may be a view. Who then changes it in place replaces the view's place in the graph, but
    not that of what it is a view of.
    """
    whole = output if output._base is None or output._base.numel() != output.numel() else output._base
    assert whole.grad_fn is not None
    _on_node(whole.grad_fn, whole.output_nr, see)


def _on_node(node: Any, place: int, see: Callable[[Tensor], None]) -> None:
    """Call with the gradient with respect to one output of a node of the graph."""

    def before(gradients: tuple[Tensor | None, ...]) -> None:
        gradient = gradients[place]
        if gradient is not None:
            see(gradient)

    node.register_prehook(before)


def _arranged(
    see: Callable[[LayerCall, Tensor], None], call: LayerCall, arrange: Callable[[Tensor], Tensor]
) -> Callable[[Tensor], None]:
    return lambda gradient: see(call, arrange(gradient))


def _on_gradient_as_it_is(output: Tensor, see: Callable[[Tensor], None]) -> None:
    """`_on_gradient` with a gradient in the output's own arrangement: a recurrent layer's may be turned."""
    base = output._base
    if base is None or base.numel() != output.numel():
        _on_gradient(output, see)
    elif base.is_contiguous():
        size, stride, offset = output.size(), output.stride(), output.storage_offset() - base.storage_offset()
        _on_gradient(output, lambda gradient: see(gradient.contiguous().as_strided(size, stride, offset)))
    else:
        _on_node(output.grad_fn, output.output_nr, see)


def _taken(see: Callable[[LayerCall, Tensor], None], call: LayerCall, use: FollowedUse) -> Callable[[Tensor], None]:
    def seen(grad_output: Tensor) -> None:
        use.take_gradient(grad_output)
        see(call, grad_output)

    return seen


def _kept(
    see: Callable[[LayerCall, Tensor], None], call: LayerCall, replay: ReplayedCall, place: int, output: Rows
) -> Callable[[Tensor], None]:
    def seen(gradient: Tensor) -> None:
        if replay.take_gradient(current_graph_task(), place, output, gradient):
            see(call, gradient)

    return seen


class ModuleHook:
    """A hook on a user's module that does not come along where the module is pickled or copied.

    See `noisescale.capture.hooks.hooks.ExampleCountHook`.
    """

    def __init__(self, module: nn.Module, see: Callable[..., None]) -> None:
        self._module = module
        self._see = see

    def __call__(self, module: nn.Module, *arguments: Any) -> None:
        """Pass on what the module was called with."""
        if not torch.compiler.is_compiling() and module is self._module:
            self._see(*arguments)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")
