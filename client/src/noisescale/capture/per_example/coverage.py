"""Which parameters of a model have per-example norms, found before the first step."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from noisescale.capture.per_example.layers.embedding import EMBEDDING
from noisescale.capture.per_example.layers.layer_rule import LayerRule
from noisescale.capture.per_example.layers.linear import LINEAR
from noisescale.capture.per_example.layers.registry import rule_of
from noisescale.capture.per_example.left_out import LeftOut, Remedy

Layers = Literal["all", "norm_layers"]


@dataclass(frozen=True, slots=True)
class MeasuredLayer:
    """A layer with a rule.

    Attributes:
        name: In the model.
        module: The layer.
        rule: How it contributes.
        parameters: Its own name of each covered parameter, and the parameter's name in the model.
    """

    name: str
    module: nn.Module
    rule: LayerRule
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is measured and what is not.

    Attributes:
        covered: Names of parameters, in the model's order.
        layers: Whose calls must be seen.
        left_out: The others, and why.
        followed: Names of those covered that are no layer's: their uses are looked for in each forward.
    """

    covered: list[str]
    layers: list[MeasuredLayer]
    left_out: list[LeftOut]
    followed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Owner:
    """A layer that holds a parameter, under the layer's own name for it."""

    layer_name: str
    module: nn.Module
    name: str


def find_coverage(model: nn.Module, parameters: Mapping[str, Tensor], layers: Layers) -> Coverage:
    """The coverage of a model.

    Args:
        model: Its modules are looked at, never called.
        parameters: Those to be measured, by their name in the model.
        layers: All that have a rule, or the normalisations only.
    """
    obstacle = _obstacle(model, parameters)
    if obstacle is not None:
        return Coverage([], [], [obstacle])
    owners = _owners(model)
    left_out: list[LeftOut] = []
    covered: list[str] = []
    followed: list[str] = []
    for name, parameter in parameters.items():
        held_by = owners.get(id(parameter), [])
        if layers == "norm_layers" and not _are_norms(held_by):
            continue
        reason = _reason(name, parameter, held_by)
        if reason is None or _can_be_followed(parameter, held_by):
            covered.append(name)
            followed += [] if reason is None else [name]
        else:
            left_out.append(reason)
    if layers == "norm_layers" and not covered and not left_out:
        left_out.append(
            LeftOut("the model", Remedy.USE_INSTEAD, "it has no trainable normalisation: measure all layers")
        )
    by_formula = {id(parameters[name]): name for name in covered if name not in followed}
    return Coverage(covered, _measured_layers(by_formula, owners), left_out, followed)


def batch_norms(model: nn.Module) -> list[nn.Module]:
    """Layers whose output for one example depends on the others, while in training mode."""
    return [module for module in model.modules() if isinstance(module, _BatchNorm)]


def _obstacle(model: nn.Module, parameters: Mapping[str, Tensor]) -> LeftOut | None:
    """What makes per-example norms of the whole model meaningless or impossible."""
    measured = {id(parameter) for parameter in parameters.values()}
    for name, module in model.named_modules():
        where, layer_type = name or "the model", type(module).__name__
        if isinstance(module, _BatchNorm) and module.training:
            return LeftOut(
                where,
                Remedy.NEVER,
                f"{layer_type} makes each example's gradient depend on the others: use GroupNorm or LayerNorm",
            )
        is_seen = isinstance(module, nn.RNNBase) and any(id(p) in measured for p in module.parameters())
        if getattr(module, "batch_first", True) is False and not is_seen:  # a recurrent layer's calls are compared
            return LeftOut(
                where, Remedy.USE_INSTEAD, f"{layer_type} has positions first: build it with batch_first=True"
            )
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            return LeftOut(where, Remedy.SWITCH_OFF, "torch.compile: compiled layers run no hooks")
    return None


def _owners(model: nn.Module) -> dict[int, list[_Owner]]:
    owners: dict[int, list[_Owner]] = {}
    for layer_name, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            owners.setdefault(id(parameter), []).append(_Owner(layer_name, module, name))
    # These call their inner layers' weights without calling the layers.
    for layer_name, module in model.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            for name, parameter in module.named_parameters():
                owners[id(parameter)] = [_Owner(layer_name, module, name)]
    return owners


def _are_norms(owners: Iterable[_Owner]) -> bool:
    rules = [rule_of(owner.module) for owner in owners]
    return bool(rules) and all(rule is not None and rule.is_norm for rule in rules)


def _reason(name: str, parameter: Tensor, owners: list[_Owner]) -> LeftOut | None:
    """Why a parameter has no per-example norms; None if it has."""
    if parameter.is_complex():
        return LeftOut(name, Remedy.NOT_YET, "complex numbers")
    if hasattr(parameter, "device_mesh"):
        return LeftOut(name, Remedy.USE_INSTEAD, "sharded over devices: micro-batches or ranks")
    rules = [rule_of(owner.module) for owner in owners]
    for owner, rule in zip(owners, rules, strict=True):
        layer_type = type(owner.module).__name__
        if rule is None and any(owner.module.children()):
            return LeftOut(name, Remedy.NOT_YET, "a parameter outside of a layer, used by the model itself")
        if rule is None or (rule.parameters is not None and owner.name not in rule.parameters):
            return LeftOut(name, Remedy.NOT_YET, f"{layer_type} has no formula here")
        setting = rule.refusal(owner.module)
        if setting is not None:
            return LeftOut(name, Remedy.SWITCH_OFF, f"{setting} of {layer_type}")
    if not owners:
        return LeftOut(name, Remedy.NOT_YET, "not a parameter of any layer")
    shapes = {
        rule.shape(owner.module, owner.name) for owner, rule in zip(owners, rules, strict=True) if rule is not None
    }
    if len(shapes) > 1 or not (len(set(rules)) == 1 or set(rules) == {LINEAR, EMBEDDING}):
        return LeftOut(name, Remedy.NOT_YET, "tied between layers of different types")
    return None


def _can_be_followed(parameter: Tensor, owners: list[_Owner]) -> bool:
    """Whether the uses of a parameter without a formula are the program's own, which the graph may show."""
    if parameter.is_complex() or hasattr(parameter, "device_mesh"):
        return False
    modules = [owner.module for owner in owners]
    return all(rule_of(module) is None and not type(module).__module__.startswith("torch.") for module in modules)


def _measured_layers(names: Mapping[int, str], owners: Mapping[int, list[_Owner]]) -> list[MeasuredLayer]:
    layers: dict[int, MeasuredLayer] = {}
    for key, name in names.items():
        for owner in owners[key]:
            rule = rule_of(owner.module)
            assert rule is not None
            layer = layers.setdefault(id(owner.module), MeasuredLayer(owner.layer_name, owner.module, rule, {}))
            layer.parameters[owner.name] = name
    return list(layers.values())
