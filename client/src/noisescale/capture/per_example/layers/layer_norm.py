"""LayerNorm and RMSNorm: weight Σ_t grad_output_t · normalised input_t, bias Σ_t grad_output_t.

Source: Gray et al. 2024, arXiv:2411.00999, section 4, there for LayerNorm with a fused kernel.
"""

# L leading dimension: B examples of m rows, b examples of a slice, T positions, D normalised elements

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from noisescale.capture.per_example.contributions import Contribution, SummedTerms, wide
from noisescale.capture.per_example.fused_norm_layers import eps_in
from noisescale.capture.per_example.layers.layer_rule import LayerRule, sum_of_gradients, vector_shape
from noisescale.kernels.layer_norm_sq_norms.choice import is_for_kernel, norm_layer_gradients, takes_triton
from noisescale.kernels.layer_norm_sq_norms.naive import NormLayerCall
from noisescale.kernels.preference import Kernels

USUAL_EPS = 1e-5
"""Of a LayerNorm that does not tell: the default of `torch.nn.functional.layer_norm`."""

Normalise = Callable[[nn.Module, Tensor], Tensor]


def contribute_layer_norm(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of `nn.LayerNorm` and of classes like it; input [L, ..., D]."""
    return _contribute(_layer_normalised, module, name, activation, grad_output, num_examples)


def contribute_rms_norm(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of `nn.RMSNorm` and of classes like it; input [L, ..., D]."""
    return _contribute(_rms_normalised, module, name, activation, grad_output, num_examples)


def sq_norms(
    module: nn.Module, activation: Tensor, grad_output: Tensor, num_examples: int, kernels: Kernels
) -> dict[str, Tensor]:
    """Of LayerNorm, RMSNorm and classes like it, by a kernel that reads input and output gradient once."""
    weight = module.get_parameter("weight")
    if not takes_triton(kernels, activation.device) or not is_for_kernel(activation, grad_output, weight):
        return {}
    eps = _eps(module)
    is_centred = _is_centred(module)
    call = NormLayerCall(
        activation=activation,
        grad_output=grad_output,
        weight=weight,
        num_examples=num_examples,
        eps=(USUAL_EPS if is_centred else eps_in(activation.dtype)) if eps is None else eps,
        is_centred=is_centred,
    )
    found = norm_layer_gradients(call, kernels=kernels, needs_grad_input=False)
    known = {"weight": found.weight_sq_norm_B, "bias": found.bias_sq_norm_B}
    return {name: sq_norm_B for name, sq_norm_B in known.items() if sq_norm_B is not None}


def looks_like_rms_norm(module: nn.Module) -> bool:
    """Whether this is a root-mean-square normalisation of another package.

    Such a layer (Llama's, Gemma's) is known by its name and its one weight; that its gradient is that of a
    normalisation is checked with numbers at run time, as for every layer.
    """
    name = type(module).__name__
    is_named = name.endswith("RMSNorm") or (name.endswith("LayerNorm") and hasattr(module, "variance_epsilon"))
    is_foreign = is_named and not isinstance(module, nn.RMSNorm)
    return is_foreign and _vectors_of(module) == ["weight"] and _eps(module) is not None


def looks_like_layer_norm(module: nn.Module) -> bool:
    """Whether this is a LayerNorm that a program has written itself, as nanoGPT's, whose bias is optional.

    Known by its name and its parameters, and checked like `looks_like_rms_norm`: of another formula, or another
    epsilon, its gradient does not add up, and it is left out.
    """
    is_named = type(module).__name__.endswith("LayerNorm") and not isinstance(module, nn.LayerNorm)
    return is_named and _vectors_of(module) in (["weight"], ["weight", "bias"]) and not looks_like_rms_norm(module)


def _vectors_of(module: nn.Module) -> list[str]:
    """Names of the parameters, none where one of them is no vector."""
    named = list(module.named_parameters())
    return [name for name, _ in named] if all(parameter.dim() == 1 for _, parameter in named) else []


def _is_centred(module: nn.Module) -> bool:
    return isinstance(module, nn.LayerNorm) or looks_like_layer_norm(module)


def _contribute(
    normalise: Normalise,
    module: nn.Module,
    name: str,
    activation: Tensor | None,
    grad_output: Tensor,
    num_examples: int,
) -> Contribution:
    num_elements = module.get_parameter(name).numel()
    grad_output_LTD = grad_output.reshape(len(grad_output), -1, num_elements)
    if name == "bias":
        return sum_of_gradients(grad_output_LTD, num_examples)
    assert activation is not None
    kept, num_rows = activation, len(grad_output) // num_examples

    def terms(start: int, stop: int) -> Tensor:
        of_slice = slice(start * num_rows, stop * num_rows)
        value = kept[of_slice]
        normalised = normalise(module, value.to(wide(value.dtype)))
        term = normalised.view(grad_output_LTD[of_slice].shape) * grad_output_LTD[of_slice]
        return term.reshape(stop - start, -1, num_elements)

    return SummedTerms(
        num_examples=num_examples,
        num_positions=num_rows * grad_output_LTD.shape[1],
        num_elements=num_elements,
        dtype=grad_output.dtype,
        terms=terms,
    )


def _layer_normalised(module: nn.Module, value: Tensor) -> Tensor:
    eps = _eps(module)
    return functional.layer_norm(value, module.get_parameter("weight").shape, eps=USUAL_EPS if eps is None else eps)


def _rms_normalised(module: nn.Module, value: Tensor) -> Tensor:
    shape = module.get_parameter("weight").shape
    return functional.rms_norm(value, shape, eps=_eps(module))


def _eps(module: nn.Module) -> float | None:
    for name in ("eps", "variance_epsilon", "epsilon"):
        eps = getattr(module, name, None)
        if isinstance(eps, float):
            return eps
    return None


def _num_normalised_dimensions(module: nn.Module) -> int:
    return module.get_parameter("weight").dim()


LAYER_NORM = LayerRule(
    parameters=("weight", "bias"),
    contribute=contribute_layer_norm,
    shape=vector_shape,
    num_feature_dimensions=_num_normalised_dimensions,
    is_norm=True,
    sq_norms=sq_norms,
)

RMS_NORM = LayerRule(
    parameters=("weight",),
    contribute=contribute_rms_norm,
    shape=vector_shape,
    num_feature_dimensions=_num_normalised_dimensions,
    is_norm=True,
    sq_norms=sq_norms,
)
