"""Calls of normalisation layers in all the ways in which the slab kernel cuts them, and what is right for each."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from client.capture.per_example.brute_force_examples import brute_force as brute_force_of_model
from client.capture.per_example.brute_force_examples import brute_force_of_layer, make_norms
from client.capture.per_example.models_of_examples import TinyGPT, mean_of_tokens
from noisescale.capture.per_example.checksum import NUM_PROVING_BACKWARDS
from noisescale.kernels.layer_norm_sq_norms.naive import NormLayerCall, NormLayerGradients

EXACT = {"weight_sq_norm_B", "bias_sq_norm_B"}
"""fp64 results, whatever precision the input has."""


@dataclass(frozen=True)
class Case:
    """One call; a name says what is special about it."""

    num_examples: int
    num_positions: int
    num_elements: int
    is_centred: bool = True
    dtype: torch.dtype = torch.float32
    grad_dtype: torch.dtype | None = None
    weight_dtype: torch.dtype | None = None
    eps: float = 1e-5
    is_flat: bool = False
    layout: str = "contiguous"


CASES = {
    "one element": Case(1, 1, 1),
    "rows are examples": Case(37, 1, 40),
    "rows are examples, fp16": Case(19, 1, 40, dtype=torch.float16, is_flat=True),
    "rows are examples, RMSNorm": Case(21, 1, 96, is_centred=False, is_flat=True),
    "hundreds of examples": Case(300, 1, 8),
    "several examples a slab": Case(10, 3, 33),
    "several examples a slab, bf16": Case(9, 5, 100, dtype=torch.bfloat16),
    "several examples a slab, RMSNorm": Case(7, 4, 64, is_centred=False),
    "an example is a slab": Case(3, 16, 24),
    "slabs end within an example": Case(3, 50, 20),
    "slabs end within an example, RMSNorm, bf16": Case(2, 37, 48, is_centred=False, dtype=torch.bfloat16),
    "no element count of a vector": Case(2, 18, 1001),
    "a full row": Case(2, 3, 1024),
    "autocast": Case(3, 18, 40, dtype=torch.bfloat16, grad_dtype=torch.float32, weight_dtype=torch.float32),
    "no eps": Case(3, 19, 16, eps=0.0),
    "rows of several tiles": Case(2, 3, 4100),
    "rows of several tiles, RMSNorm": Case(1, 17, 4100, is_centred=False),
    "rows of several tiles are examples": Case(3, 1, 4097),
    "the longest 16-bit rows": Case(2, 2, 8192, dtype=torch.bfloat16),
    "transposed": Case(3, 18, 20, layout="transposed"),
    "odd address": Case(3, 18, 20, layout="odd address"),
    "expanded gradient": Case(3, 18, 20, layout="expanded"),
}


def make_call(case: Case, device: str = "cpu") -> NormLayerCall:
    """The same numbers on every device."""
    generator = torch.Generator().manual_seed(case.num_elements)
    shape = case.num_examples, case.num_positions, case.num_elements

    def numbers(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator)

    activation = (numbers(*shape) * 2 + 1).to(device, case.dtype)
    grad_output = numbers(*shape).to(device, case.grad_dtype or case.dtype)
    weight = (numbers(case.num_elements) + 1).to(device, case.weight_dtype or case.dtype)
    if case.is_flat:
        activation, grad_output = activation.flatten(0, 1), grad_output.flatten(0, 1)
    if case.layout == "transposed":
        activation = activation.transpose(0, 1).contiguous().transpose(0, 1)
    elif case.layout == "odd address":
        activation = torch.cat([activation.new_zeros(1), activation.flatten()])[1:].view(shape)
        grad_output = torch.cat([grad_output.new_zeros(3), grad_output.flatten()])[3:].view(shape)
    elif case.layout == "expanded":
        grad_output = grad_output[:, :1, :1].expand(shape)
    return NormLayerCall(activation, grad_output, weight, case.num_examples, case.eps, case.is_centred)


def with_statistics(call: NormLayerCall) -> NormLayerCall:
    """The same call, whose statistics somebody knows."""
    value = call.activation.double().reshape(-1, call.num_elements)
    mean = value.mean(1) if call.is_centred else torch.zeros_like(value[:, 0])
    scale = ((value - mean[:, None]).square().mean(1) + call.eps).rsqrt()
    return replace(call, statistics=(mean.float(), scale.float()))


def brute_force(call: NormLayerCall) -> NormLayerGradients:
    """One backward of PyTorch's own layer in fp64 for all, and one for each example."""
    num_elements = call.num_elements
    kind = nn.LayerNorm if call.is_centred else nn.RMSNorm
    layer = kind(num_elements, eps=call.eps).double()
    with torch.no_grad():
        layer.weight.copy_(call.weight)
    shape = call.num_examples, call.num_positions, num_elements
    activation = call.activation.cpu().double().reshape(shape).requires_grad_()
    grad_output = call.grad_output.cpu().double().reshape(shape)
    layer(activation).backward(grad_output)
    sq_norm_BP = brute_force_of_layer(layer, activation.detach(), grad_output)
    return NormLayerGradients(
        grad_input=activation.grad.view(call.activation.shape),
        grad_weight=layer.weight.grad,
        grad_bias=layer.bias.grad if call.is_centred else None,
        weight_sq_norm_B=sq_norm_BP[:, 0],
        bias_sq_norm_B=sq_norm_BP[:, 1] if call.is_centred else None,
    )


def errors(found: NormLayerGradients, right: NormLayerGradients) -> dict[str, float]:
    """How far each result is off, relative to its size; of squared norms the worst example counts."""
    off = {}
    for name in NormLayerGradients.__dataclass_fields__:
        own, truth = getattr(found, name), getattr(right, name)
        assert (own is None) == (truth is None), name
        if own is None:
            continue
        assert own.shape == truth.shape, name
        difference, truth = (own.cpu().double() - truth).abs(), truth.abs()
        if name in EXACT:
            assert own.dtype == torch.float64
            off[name] = (difference / truth.clamp(min=1e-12)).max().item()
        else:
            off[name] = (difference.norm() / truth.norm().clamp(min=1e-6)).item()
    return off


def are_same_bits(found: NormLayerGradients, again: NormLayerGradients) -> bool:
    """Whether two results are equal in every bit."""
    pairs = [(getattr(found, name), getattr(again, name)) for name in NormLayerGradients.__dataclass_fields__]
    return all(one is other if one is None else torch.equal(one, other) for one, other in pairs)


def check_kernel(name: str, device: str) -> dict[str, object]:
    """How far the kernel is off in one case: with grad_input, without it, and with statistics given."""
    from noisescale.kernels.layer_norm_sq_norms.launch import fused_gradients

    call = make_call(CASES[name], device)
    right = brute_force(call)
    whole = fused_gradients(call)
    observed = replace(right, grad_input=None)
    return {
        "whole": errors(whole, right),
        "observed": errors(fused_gradients(call, needs_grad_input=False), observed),
        "with statistics": errors(fused_gradients(with_statistics(call)), right),
        "observed with statistics": errors(fused_gradients(with_statistics(call), needs_grad_input=False), observed),
        "is repeatable": are_same_bits(whole, fused_gradients(call)),
    }


def check_capture(device: str, *, fused_norm_layers: bool) -> float:
    """Relative error of the per-example norms of a small GPT in fp32, when the kernel gives those of normalisations."""
    torch.manual_seed(0)
    model, tokens, loss = TinyGPT().to(device), torch.randint(0, 13, (5, 19)).to(device), mean_of_tokens(5)
    norms = make_norms(model, layers="norm_layers", fused_norm_layers=fused_norm_layers, kernels="triton")
    for _ in range(NUM_PROVING_BACKWARDS + 1):
        model.zero_grad()
        loss(model(tokens), tokens).backward()
        found = norms.per_example()
    norms.remove()
    right = brute_force_of_model(model.cpu().double(), tokens.cpu(), tokens.cpu(), loss, norms.covered)
    return ((found.cpu() - right).abs() / right).max().item()


WATCHED = {"watched, replaced backward": True, "watched, observed": False}
"""Cases of a whole model: whether the kernel stands in for the backward of its normalisations."""


def check_on_cpu(name: str) -> object:
    """What a case of the kernel, or of a watched model, gives there."""
    if name in WATCHED:
        return check_capture("cpu", fused_norm_layers=WATCHED[name])
    return check_kernel(name, "cpu")
