"""Who sums gradients up: ours, and what PyTorch offers for the same."""

import importlib
import importlib.util
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from benchmarks.kernels.workload import BIAS_CORRECTION, EPS, Workload
from noisescale.kernels import MultiTensor
from noisescale.kernels.operations import Operation
from noisescale.kernels.preference import Kernels
from noisescale.kernels.squared_norms import squared_norms

OURS = "noisescale"
PLAIN = "noisescale, PyTorch's operators"
MOVED = "noisescale, addresses change"
FOREACH = "torch._foreach_norm(dtype=fp32)"
COMPILED = "inductor, sums of squares"
TOTAL_NORM = "torch.nn.utils.get_total_norm"
APEX = "apex, multi_tensor_l2norm"
TRANSFORMER_ENGINE = "Transformer Engine, multi_tensor_l2norm"
LOOP = "loop of vector_norm(dtype=fp32)"
FOREACH_ADD = "torch._foreach_add_ alone"
ADD_AND_NORM = "torch._foreach_add_, then torch._foreach_norm"

MOST_COMPILED = 200
"""Outputs of one compiled graph; a thousand would be compiled for minutes."""

Sums = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do an operation.

    Attributes:
        name: As results call it.
        call: Does it once; gives kinds of sums, each [P] or [1], or none. Waits for nothing.
        is_ours: Held to the bounds.
        why_not: Why it cannot be measured here; empty where it can.
    """

    name: str
    call: Callable[[], Sums]
    is_ours: bool = False
    why_not: str = ""


def contenders(work: Workload, *, with_compiled: bool = True) -> list[Contender]:
    """All for one operation; the first is ours, the second what its time is a ratio to.

    Args:
        work: Operation and lists.
        with_compiled: Whether inductor is asked, which compiles for a minute.
    """
    if work.operation is Operation.SQ_NORMS:
        return _of_norms(work.gradients, with_compiled=with_compiled)
    ours = Contender(OURS, fused(work, "auto"), is_ours=True)
    same = "" if work.gradients[0].is_cuda else "on a CPU that is what noisescale does anyway"
    plain = Contender(PLAIN, fused(work, "torch"), is_ours=True, why_not=same)
    if work.operation is Operation.ACCUMULATE:
        return [ours, *_of_adding(work), plain]
    return [ours, plain]


def fused(work: Workload, kernels: Kernels) -> Callable[[], Sums]:
    """The operation by `MultiTensor`."""
    gradients, others = work.gradients, work.others or []
    sizes, dtypes = [g.numel() for g in gradients], [g.dtype for g in gradients]
    multi_tensor = MultiTensor(sizes, dtypes, gradients[0].device, kernels=kernels)
    count = len(gradients)

    def norm() -> Sums:
        return [multi_tensor.sq_norms(gradients).sq_norm[:count]]

    def dots() -> Sums:
        sums = multi_tensor.dots(gradients, others)
        assert sums.other_sq_norm is not None
        assert sums.dot is not None
        return [sums.sq_norm[:count], sums.other_sq_norm[:count], sums.dot[:count]]

    def accumulate() -> Sums:
        sums = multi_tensor.accumulate(others, gradients)
        assert sums.other_sq_norm is not None
        return [sums.sq_norm[:count], sums.other_sq_norm[:count]]

    def preconditioned() -> Sums:
        return [multi_tensor.preconditioned(gradients, others, EPS, BIAS_CORRECTION).sq_norm[:count]]

    calls = {
        Operation.SQ_NORMS: norm,
        Operation.DOTS: dots,
        Operation.ACCUMULATE: accumulate,
        Operation.PRECONDITIONED: preconditioned,
    }
    return calls[work.operation]


def _of_norms(gradients: list[Tensor], *, with_compiled: bool) -> list[Contender]:
    found = [
        Contender(OURS, lambda: [squared_norms(gradients)], is_ours=True),
        Contender(FOREACH, lambda: [_squared(torch._foreach_norm(gradients, dtype=torch.float32))]),
        Contender(TOTAL_NORM, lambda: [get_total_norm(gradients).double().square().reshape(1)]),
        Contender(LOOP, lambda: [_squared([torch.linalg.vector_norm(g, dtype=torch.float32) for g in gradients])]),
        Contender(PLAIN, fused(Workload(Operation.SQ_NORMS, gradients, None), "torch"), is_ours=True),
        _moved(gradients),
        _by_apex(gradients),
        _by_transformer_engine(gradients),
    ]
    return [*found, _compiled(gradients)] if with_compiled else found


def _squared(norms: Sequence[Tensor]) -> Tensor:
    """Norms in fp32 → squares in fp64, [P]: what every estimator has to do with them."""
    return torch.stack(tuple(norms)).double().square()


def _moved(gradients: list[Tensor]) -> Contender:
    """Ours where every call finds gradients elsewhere than the last, so that the table of addresses travels."""
    if not gradients[0].is_cuda:
        return Contender(MOVED, list, is_ours=True, why_not="only a GPU has tables of addresses")
    if 3 * sum(g.nbytes for g in gradients) > torch.cuda.mem_get_info(gradients[0].device)[0]:
        return Contender(MOVED, list, is_ours=True, why_not="no memory for a second list")
    turns = itertools.cycle([gradients, [g.clone() for g in gradients]])
    return Contender(MOVED, lambda: [squared_norms(next(turns))], is_ours=True)


def _by_apex(gradients: list[Tensor]) -> Contender:
    """The multi-tensor norm that Megatron-LM's clipping calls, where apex is built."""
    if any(importlib.util.find_spec(name) is None for name in ("apex", "amp_C")):
        return Contender(APEX, list, why_not="apex with its CUDA extensions is not installed")
    applier = importlib.import_module("apex.multi_tensor_apply").multi_tensor_applier
    norm = importlib.import_module("amp_C").multi_tensor_l2norm
    overflow = torch.zeros(1, dtype=torch.int32, device=gradients[0].device)
    return Contender(APEX, lambda: [applier(norm, overflow, [gradients], True)[1].double().square()])


def _by_transformer_engine(gradients: list[Tensor]) -> Contender:
    """The same of Transformer Engine."""
    if importlib.util.find_spec("transformer_engine") is None:
        return Contender(TRANSFORMER_ENGINE, list, why_not="Transformer Engine is not installed")
    module = importlib.import_module("transformer_engine.pytorch.optimizers")
    overflow = torch.zeros(1, dtype=torch.int32, device=gradients[0].device)

    def sums() -> Sums:
        found = module.multi_tensor_applier(module.multi_tensor_l2norm, overflow, [gradients], True)
        return [found[1].double().square()]

    return Contender(TRANSFORMER_ENGINE, sums)


def _compiled(gradients: list[Tensor]) -> Contender:
    if len(gradients) > MOST_COMPILED:
        why = f"a graph of {len(gradients)} outputs is compiled for minutes"
        return Contender(COMPILED, list, why_not=why)

    def sums(tensors: list[Tensor]) -> Tensor:
        return torch.stack([tensor.float().square().sum() for tensor in tensors]).double()

    compiled = torch.compile(sums, fullgraph=True, dynamic=False)
    return Contender(COMPILED, lambda: [compiled(gradients)])


def _of_adding(work: Workload) -> list[Contender]:
    gradients, main = work.gradients, work.others or []

    def add() -> Sums:
        torch._foreach_add_(main, gradients)
        return []

    def add_and_norm() -> Sums:
        torch._foreach_add_(main, gradients)
        return [_squared(torch._foreach_norm(gradients, dtype=torch.float32))]

    return [Contender(FOREACH_ADD, add), Contender(ADD_AND_NORM, add_and_norm)]
