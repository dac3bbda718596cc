"""FSDP2 (`fully_shard`) and `replicate`: gradients are seen on the unsharded leaves, |ḡ|² on the shards.

Hooks on the sharded parameters never fire. The unsharded parameter of each is made at the first forward and kept, so
our hook goes there, behind FSDP's own forward hook. Autograd hands it the gradient of each micro-batch, whole.
"""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from noisescale.capture.data_parallel.job import RemovableHandle, SeeGradient
from noisescale.capture.data_parallel.observed_reduce_scatter import (
    ObservedReduceScatter,
    divided_before,
    segments_of,
)
from noisescale.capture.data_parallel.own_gradient import OwnGradient
from noisescale.capture.data_parallel.rank_sums import RankSums, open_group
from noisescale_core.errors import ConfigError

LOOK_EVERY = 4
"""Synchronised backward passes per look at the rank's own gradient: one more pass over the gradients."""


class FsdpJob:
    """A model under `fully_shard`; see `DataParallelJob` for the attributes.

    Args:
        model: Holds the sharded modules.
        parameters: Those watched, by name: the sharded ones.
        is_by_rank: Look at each rank's own gradient only, where it goes into the reduce-scatter.

    Raises:
        ConfigError: For ways of using it that cannot be measured, or where other ranks do not come.
    """

    name = "fsdp"
    has_shards = True
    is_blind = False
    is_compressed = False  # reduced in 16 bit, gradients are as exact as autograd made them

    def __init__(self, model: nn.Module, parameters: Mapping[str, Tensor], *, is_by_rank: bool = False) -> None:
        self.is_by_rank = is_by_rank
        self._modules = [module for module in model.modules() if isinstance(module, FSDPModule)]
        self._groups = param_groups(self._modules)
        self._parameters = list(parameters.values())
        mesh = refuse_unsupported(self._groups, parameters)
        self.num_ranks = mesh.size()
        ranks = mesh.mesh.flatten().tolist()
        self.is_first = dist.get_rank() == ranks[0]
        self.sums: RankSums | None = None
        if self.num_ranks > 1:
            group = open_group(ranks, f"{len(parameters)} parameters with fully_shard")
            self.sums = RankSums(group, self.num_ranks)
        self.notes: Sequence[str] = notes_on(mesh)
        self._shares = [1 / num_copies(p) for p in self._parameters]
        self._index = {id(p): index for index, p in enumerate(self._parameters)}
        self._leaf_of: dict[int, Tensor] = {}
        self._hooks: Sequence[SeeGradient] = []
        self._own = OwnGradient(len(parameters))
        self._num_synchronised = 0
        self._handles: list[RemovableHandle] = []
        self._observed: list[tuple[Any, Any]] = []

    @property
    def averages_over(self) -> float:
        """R, or the factor given to `set_gradient_divide_factor`."""
        factor = self._groups[0].gradient_divide_factor
        return float(factor) if factor else float(self.num_ranks)

    def arm(self, hooks: Sequence[SeeGradient]) -> None:
        """Hook each unsharded parameter, as soon as it exists."""
        self._hooks = hooks
        for module in self._modules:
            self._handles.append(module.register_forward_pre_hook(UnshardHook(module, self._hook_unsharded)))
        if self.is_by_rank and self.num_ranks > 1:
            self._observed = [self._observe(module) for module in self._modules if param_groups([module])]

    def disarm(self) -> None:
        """Take all hooks off, and give each module its own reduce-scatter back."""
        for module, inner in self._observed:
            module.set_custom_reduce_scatter(inner)
        self._observed = []
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._leaf_of.clear()

    def _hook_unsharded(self, module: nn.Module) -> None:
        for group in param_groups([module]):
            for fsdp_param in group.fsdp_params:
                index = self._index.get(id(fsdp_param.sharded_param))
                leaf = getattr(fsdp_param, "_unsharded_param", None)
                if index is None or leaf is None or self._leaf_of.get(index) is leaf:
                    continue
                self._leaf_of[index] = leaf
                self._handles.append(leaf.register_hook(self._hooks[index]))
                if self.num_ranks > 1 and not self.is_by_rank:
                    self._handles.append(leaf.register_post_accumulate_grad_hook(self._own_hook(index, fsdp_param)))

    def _observe(self, module: Any) -> tuple[Any, Any]:
        """Look at what a module's reduce-scatter is given from now on; returns what was there."""
        (group,) = param_groups([module])
        inner = group._reduce_scatter_comm
        module.set_custom_reduce_scatter(ObservedReduceScatter(inner, functools.partial(self._see_flat, group)))
        return module, inner

    def _see_flat(self, group: Any, flat: Tensor) -> None:
        if not self._own.is_wanted:
            return
        shards = group.mesh_info.shard_mesh_size
        lengths = tuple([fsdp_param.padded_sharded_param_size.numel() for fsdp_param in group.fsdp_params])
        found = [self._index.get(id(fsdp_param.sharded_param)) for fsdp_param in group.fsdp_params]
        indices = tuple([index for index in found if index is not None])
        segments = segments_of(lengths, tuple([index is not None for index in found]), shards, flat.dtype, flat.device)
        if sum(lengths) * shards != flat.numel():
            self._own.is_incomplete = True  # some parameters had no gradient in this backward
            return
        factor = divided_before(flat.dtype, group.gradient_divide_factor or self.num_ranks) ** 2
        self._own.see_squared(indices, segments.sq_norms(flat) * factor)

    def _own_hook(self, index: int, fsdp_param: Any) -> SeeGradient:
        def see(leaf: Tensor) -> None:
            if not self._own.is_wanted:
                return
            earlier = fsdp_param.unsharded_accumulated_grad  # where gradients are summed in a wider type
            assert leaf.grad is not None
            self._own.see(index, leaf.grad if earlier is None else earlier + leaf.grad)

        return see

    def see_forward(self) -> None:
        """Decide whether the backward to come is looked at."""
        is_looking = self.is_by_rank or self._num_synchronised % LOOK_EVERY == 0
        self._own.is_wanted = is_looking and self._is_reducing()

    def is_synchronising(self) -> bool:
        """Whether all shards hold the mean over ranks now."""
        is_synchronising = self._is_reducing()
        self._num_synchronised += is_synchronising
        return is_synchronising

    def _is_reducing(self) -> bool:
        if self.num_ranks == 1:
            return False
        is_last = all(module._get_fsdp_state()._state_ctx.is_last_backward for module in self._modules)
        return is_last and all(group.reduce_grads and group.all_reduce_grads for group in self._groups)

    def own_sq_norms(self) -> Tensor | None:
        """Of each parameter; None where this backward is not looked at."""
        return self._own.take()

    def averaging_values(self) -> Tensor | None:
        """Not checked: elements come back on other ranks."""
        return None

    def local_gradients(self) -> list[Tensor | None]:
        """This rank's shard of each."""
        return [local_part(p.grad) for p in self._parameters]

    def shares(self) -> Sequence[float]:
        """1 / number of ranks that hold the same shard."""
        return self._shares


class UnshardHook:
    """Runs behind FSDP's own forward hook, when the unsharded parameters exist.

    It lives in the user's module: pickled or copied it becomes a function of the standard library that does nothing.
    """

    def __init__(self, module: nn.Module, hook: Any) -> None:
        self._module = module
        self._hook = hook

    def __call__(self, module: nn.Module, _: tuple[Any, ...]) -> None:
        """Hook what is new."""
        if not torch.compiler.is_compiling() and module is self._module:
            self._hook(module)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


def param_groups(modules: Sequence[nn.Module]) -> list[Any]:
    """What `fully_shard` communicates together, in these modules; each once."""
    groups: dict[int, Any] = {}
    for module in modules:
        assert isinstance(module, FSDPModule)
        state: Any = module._get_fsdp_state()
        found = getattr(state, "_fsdp_param_groups", None)  # one only, up to PyTorch 2.9
        for group in [state._fsdp_param_group] if found is None else found:
            if group is not None:
                groups[id(group)] = group
    return list(groups.values())


def local_part(gradient: Tensor | None) -> Tensor | None:
    """The part of a gradient that lies on this rank."""
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient


def num_copies(parameter: Tensor) -> int:
    """Ranks that hold the same shard."""
    copies = 1
    if isinstance(parameter, DTensor):
        for size, placement in zip(parameter.device_mesh.shape, parameter.placements, strict=True):
            copies *= size if placement.is_replicate() else 1
    return copies


def notes_on(mesh: DeviceMesh) -> list[str]:
    """What to know of the ranks that the model is spread over."""
    names = [name for name in mesh.mesh_dim_names or () if "cp" in name.split("_")]
    return [
        f"mesh {name}: with context parallelism ranks hold parts of an example, and this is wrong" for name in names
    ]


def refuse_unsupported(groups: Sequence[Any], parameters: Mapping[str, Tensor]) -> DeviceMesh:
    """The mesh that all parameters are spread over.

    Raises:
        ConfigError: For what would give wrong numbers, with the way out.
    """
    managed = {id(fsdp_param.sharded_param): fsdp_param for group in groups for fsdp_param in group.fsdp_params}
    outside = [name for name, parameter in parameters.items() if id(parameter) not in managed]
    if outside:
        raise ConfigError(
            f"fully_shard does not hold {outside[0]}, so its gradient is not averaged: shard the root too"
        )
    if any(fsdp_param.is_dtensor for fsdp_param in managed.values()):
        raise ConfigError(
            "fully_shard over tensor-parallel parameters is not supported yet: hand norms to log_norms() instead"
        )
    meshes = [fsdp_param._sharding_spec.mesh for fsdp_param in managed.values()]
    if any(mesh != meshes[0] for mesh in meshes):
        raise ConfigError("parameters on different meshes are averaged over different ranks: not supported yet")
    factors = {group.gradient_divide_factor for group in groups}
    if len(factors) > 1:
        raise ConfigError(f"one gradient_divide_factor for all modules is needed, got {sorted(map(str, factors))}")
    mesh: DeviceMesh = meshes[0]
    return mesh
