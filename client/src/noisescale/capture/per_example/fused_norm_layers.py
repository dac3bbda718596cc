"""LayerNorm and RMSNorm with a backward that gives each example's norm, too, while a model is watched that way.

This replaces a kernel of the training, so it is done by choice only. Outputs stay those of PyTorch, bit by bit;
gradients are equal to rounding. Whatever is unusual (a transform of functions, a second derivative, a fault of ours)
runs as PyTorch would.
"""

# L leading dimension of rows, B examples

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from noisescale.capture.per_example.contributions import wide
from noisescale.kernels.layer_norm_sq_norms.choice import norm_layer_gradients, takes_triton
from noisescale.kernels.layer_norm_sq_norms.naive import NormLayerCall
from noisescale.kernels.preference import Kernels

REQUEST = "sq_norm_request"
"""Name under which a replaced layer's node of the autograd graph holds its `SqNormRequest`."""


@dataclass(slots=True)
class SqNormRequest:
    """Asked before a layer's backward, answered by it.

    Attributes:
        num_examples: B, or groups of examples; None: nobody asked.
        sq_norms: |s_i|² of each parameter that the layer has, by the layer's own name, [B] fp64.
    """

    num_examples: int | None = None
    sq_norms: dict[str, Tensor] = field(default_factory=dict)

    def ask(self, num_examples: int | None) -> None:
        """For the next backward; the answer of the one before is forgotten."""
        self.num_examples = num_examples
        self.sq_norms = {}


@dataclass(frozen=True, slots=True)
class _Layer:
    """What the backward must know of a layer."""

    eps: float | None
    is_centred: bool
    kernels: Kernels
    on_fault: Callable[[Exception], None]

    def output(self, activation: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """As PyTorch computes it."""
        if self.is_centred:
            assert self.eps is not None
            return functional.layer_norm(activation, weight.shape, weight, bias, self.eps)
        return functional.rms_norm(activation, weight.shape, weight, self.eps)


class FusedNormLayers:
    """Gives normalisation layers that forward; `remove()` gives them their own back.

    A model's parameters, buffers and `state_dict()` stay as they are, and its copies have the layers' own forward.

    Args:
        modules: Layers of the model; those that are not PyTorch's LayerNorm or RMSNorm with a weight are left alone.
        kernels: Whose; see `norm_layer_gradients`.
        on_fault: Told about a fault of ours inside a backward, which PyTorch then does.

    Attributes:
        message: What is changed by it, in words.
    """

    def __init__(
        self, modules: Iterable[nn.Module], *, kernels: Kernels, on_fault: Callable[[Exception], None]
    ) -> None:
        self._modules = [module for module in modules if is_replaceable(module)]
        for module in self._modules:
            module.forward = _FusedForward(module, _layer(module, kernels, on_fault))
        self.message = self._explain(kernels)

    def remove(self) -> None:
        """Take ours off."""
        for module in self._modules:
            if isinstance(module.__dict__.get("forward"), _FusedForward):
                del module.forward
        self._modules.clear()

    def _explain(self, kernels: Kernels) -> str:
        if not self._modules:
            return "fused_norm_layers replaces nothing: the model has no nn.LayerNorm or nn.RMSNorm with a weight"
        device = self._modules[0].get_parameter("weight").device
        message = (
            f"the backward of {len(self._modules)} normalisation layers is ours: gradients are equal to rounding only"
        )
        if takes_triton(kernels, device):
            return message
        return f"{message}, and in plain PyTorch, which is slow: there is no Triton on {device.type}"


def is_replaceable(module: nn.Module) -> bool:
    """Whether a layer is PyTorch's own LayerNorm or RMSNorm with a weight, and nobody has replaced its forward."""
    is_known = type(module) in (nn.LayerNorm, nn.RMSNorm)
    return is_known and module.weight is not None and getattr(module.forward, "__func__", None) is type(module).forward


def eps_in(dtype: torch.dtype) -> float:
    """What an RMSNorm without an eps takes: that of the precision that it computes in."""
    return torch.finfo(wide(dtype)).eps


def _layer(module: nn.Module, kernels: Kernels, on_fault: Callable[[Exception], None]) -> _Layer:
    assert isinstance(module, nn.LayerNorm | nn.RMSNorm)
    return _Layer(module.eps, isinstance(module, nn.LayerNorm), kernels, on_fault)


class _FusedForward:
    """The forward of a replaced layer; copied or pickled with its module it becomes the module's own."""

    def __init__(self, module: nn.Module, layer: _Layer) -> None:
        self._module = module
        self._layer = layer

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        module: Any = self._module
        if len(args) == 1 and not kwargs and _is_plain(args[0], module.weight):
            bias = getattr(module, "bias", None)
            activation = _as_autocast_would(args[0], module.weight, self._layer)
            output: Tensor = _NormLayer.apply(activation, module.weight, bias, self._layer)
            return output
        own: Tensor = type(module).forward(module, *args, **kwargs)
        return own

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (self._module, "forward")


class _NormLayer(torch.autograd.Function):
    """PyTorch's output, and our backward."""

    @staticmethod
    def forward(ctx: Any, activation: Tensor, weight: Tensor, bias: Tensor | None, layer: _Layer) -> Tensor:
        ctx.save_for_backward(activation, weight, bias)
        ctx.layer = layer
        setattr(ctx, REQUEST, SqNormRequest())
        return layer.output(activation, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad_output,) = grad_outputs
        activation, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return _own_backward(ctx, activation, weight, bias, grad_output)
        try:
            with torch.autocast(activation.device.type, enabled=False):
                return _fused_backward(ctx, activation, weight, grad_output)
        except Exception as fault:  # noqa: BLE001  # the hook body: one of the client's three
            ctx.layer.on_fault(fault)
            return _own_backward(ctx, activation, weight, bias, grad_output)


def _fused_backward(ctx: Any, activation: Tensor, weight: Tensor, grad_output: Tensor) -> tuple[Tensor | None, ...]:
    request: SqNormRequest = getattr(ctx, REQUEST)
    call = NormLayerCall(
        activation=activation,
        grad_output=grad_output,
        weight=weight,
        num_examples=request.num_examples or 1,
        eps=eps_in(activation.dtype) if ctx.layer.eps is None else ctx.layer.eps,
        is_centred=ctx.layer.is_centred,
    )
    needs_input, needs_weight, needs_bias, _ = ctx.needs_input_grad
    gradients = norm_layer_gradients(call, kernels=ctx.layer.kernels, needs_grad_input=needs_input)
    if request.num_examples is not None:
        request.sq_norms["weight"] = gradients.weight_sq_norm_B
        if gradients.bias_sq_norm_B is not None:
            request.sq_norms["bias"] = gradients.bias_sq_norm_B
    return (
        gradients.grad_input,
        gradients.grad_weight if needs_weight else None,
        gradients.grad_bias if needs_bias else None,
        None,
    )


def _own_backward(
    ctx: Any, activation: Tensor, weight: Tensor, bias: Tensor | None, grad_output: Tensor
) -> tuple[Tensor | None, ...]:
    """As PyTorch differentiates the layer; with a graph of its own where one is wanted."""
    creates_graph = torch.is_grad_enabled()
    dtype = torch.promote_types(activation.dtype, weight.dtype)
    with torch.enable_grad(), torch.autocast(activation.device.type, enabled=False):
        # Views, as hooks on the tensors themselves would run here and again where our result arrives.
        views = [None if value is None else value.view_as(value) for value in (activation, weight, bias)]
        output = ctx.layer.output(*(None if view is None else view.to(dtype) for view in views))
        wanted = {index: view for index, view in enumerate(views) if view is not None and ctx.needs_input_grad[index]}
        found = torch.autograd.grad(
            output.to(grad_output.dtype), list(wanted.values()), grad_output, create_graph=creates_graph
        )
    gradients = dict(zip(wanted, found, strict=True))
    return tuple(gradients.get(index) for index in range(4))


def _is_plain(activation: object, weight: Tensor) -> bool:
    """Whether a forward is an ordinary one that a backward may follow; everything else is PyTorch's own affair."""
    return (
        type(activation) is Tensor
        and activation.is_floating_point()
        and activation.layout == torch.strided
        and activation.numel() > 0
        and activation.device == weight.device
        and torch.is_grad_enabled()
        and (activation.requires_grad or weight.requires_grad)
        and not torch.compiler.is_compiling()
        and not torch._C._get_tracing_state()
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )


def _as_autocast_would(activation: Tensor, weight: Tensor, layer: _Layer) -> Tensor:
    """The input in the precision in which autocast hands it to the layer.

    Cast here and not inside, where the uncast input would be kept: the training may change it in place, as it may
    without us.
    """
    device = activation.device.type
    if not torch.is_autocast_enabled(device):
        return activation
    dtypes = activation.dtype, weight.dtype, torch.get_autocast_dtype(device)
    return activation.to(_dtype_under_autocast(activation.device, *dtypes, layer.is_centred))


@cache
def _dtype_under_autocast(
    device: torch.device, activation: torch.dtype, weight: torch.dtype, autocast: torch.dtype, is_centred: bool
) -> torch.dtype:
    """Looked up by computing one element: which operators autocast widens depends on the device and on PyTorch."""
    layer = _Layer(1.0, is_centred, "torch", lambda fault: None)
    one = torch.ones(1, dtype=weight, device=device)
    with torch.no_grad():
        return layer.output(one.to(activation), one, one if is_centred else None).dtype
