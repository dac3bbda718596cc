"""Gradients in the metric of an optimizer's step, in all the ways in which a kernel sums them up, and what is right."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from noisescale.capture.path import metric
from noisescale.capture.path.affine_updates import AffineUpdates
from noisescale.capture.path.metric import Part
from noisescale.kernels import MultiTensor
from noisescale.kernels.layout import CHUNK, layout_of
from noisescale.kernels.multi_tensor.naive import NaiveReduction
from noisescale.kernels.operations import Lists, Operation
from noisescale.kernels.preference import PREFERENCE

F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64

EPS, SCALE = 1e-3, 2.5


@dataclass(frozen=True)
class Case:
    """Three lists; its name says what is special about them."""

    sizes: tuple[int, ...] = (700, 3, 2048)
    dtype: torch.dtype = F32
    other_dtype: torch.dtype = F32
    is_odd: bool = False
    numbers: str = "one"
    unseen: tuple[int, ...] = ()
    planted: tuple[tuple[int, int, float], ...] = ()
    magnitude: float = 1.0


CASES = {
    "fp32": Case((0, 1, 5, 4097, CHUNK + 1)),
    "bf16 and fp32": Case((5000, 40), BF16),
    "fp16": Case((5000, 40), F16, F16),
    "fp64": Case((500, 40), F64, F64),
    "odd addresses": Case((1, 4096, 5001), is_odd=True),
    "a number each": Case(numbers="each"),
    "numbers on the device": Case(numbers="device"),
    "never seen": Case(unseen=(0, 1, 699)),
    "planted": Case(planted=((0, 5, torch.nan), (2, 0, torch.inf))),
    "squares that hardly are": Case((5000, 40), magnitude=1e-21),
}


def make_lists(case: Case, device: str) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Gradients, second moments and averages, the same numbers on every device."""
    generator = torch.Generator().manual_seed(2)
    lists = []
    for number, dtype in enumerate((case.dtype, case.other_dtype, case.other_dtype)):
        tensors = []
        for index, size in enumerate(case.sizes):
            values = torch.randn(size, generator=generator, dtype=F64)
            values = values * case.magnitude if number == 0 else values
            values = values.abs() + 0.01 if number == 1 else values
            for tensor, element, value in case.planted if number == 0 else ():
                if tensor == index:
                    values[element] = value
            if number == 1 and index == 0:
                values[list(case.unseen)] = 0
            values = values.to(device, dtype)
            tensors.append(torch.cat([values[:1], values])[1:] if case.is_odd else values)
        lists.append(tensors)
    return lists[0], lists[1], lists[2]


def numbers_of(case: Case, device: str) -> tuple[list[float], list[float] | Tensor]:
    """ε and s of each tensor."""
    steps = range(len(case.sizes))
    eps = [EPS * (1 + index * (case.numbers == "each")) for index in steps]
    scales = [SCALE * (1 + index * (case.numbers != "one")) for index in steps]
    return eps, torch.tensor(scales, dtype=F64, device=device) if case.numbers == "device" else scales


def formula(case: Case) -> tuple[Tensor, Tensor]:
    """[4, P] as `MetricSums` has them, and what cannot be less than what an error is compared with."""
    columns, sizes = [], []
    for x, y, z, eps, scale in zip(*make_lists(case, "cpu"), *numbers_of(case, "cpu"), strict=True):
        x, y, z = x.double(), y.double(), z.double()
        quotient = torch.where(y == 0, x * 0, x / (y.sqrt() * float(scale) + eps))
        sums = [x.square().sum(), (x * quotient).sum(), (z * quotient).sum()]
        columns.append(torch.stack([*sums, (~x.isfinite()).sum().double()]))
        sizes.append(torch.stack([*sums[:2], (z * quotient).abs().sum(), torch.ones(()).double()]))
    return torch.stack(columns, dim=1), torch.stack(sizes, dim=1)


def check(name: str, device: str) -> dict[str, object]:
    """How far off kernel and PyTorch's operators are, and whether the kernel repeats in every bit."""
    case = CASES[name]
    gradients, moments, averages = make_lists(case, device)
    eps, scales = numbers_of(case, device)
    dtypes = [case.dtype] * len(case.sizes)
    lists = MultiTensor(case.sizes, dtypes, device, kernels="triton")
    found, again = (lists.in_metric(gradients, moments, averages, eps, scales) for _ in range(2))
    assert found is not None
    assert again is not None
    names = [field.name for field in fields(found) if field.name != "num_tensors"]
    naive = NaiveReduction(layout_of(case.sizes, dtypes), torch.device(device))
    plain = naive.sums(Operation.METRIC, Lists(gradients, moments, (eps, scales), third=averages))
    pairs = [(getattr(found, name), getattr(again, name)) for name in names]
    return {
        "error": error(case, torch.stack([one for one, _ in pairs])),
        "error of operators": error(case, plain),
        "is repeatable": all(torch.equal(one.view(torch.int64), other.view(torch.int64)) for one, other in pairs),
    }


def error(case: Case, sums_4S: Tensor) -> float:
    """The largest, each compared with what cannot cancel."""
    exact_4P, size_4P = formula(case)
    num = len(case.sizes)
    value_4P, value_4 = sums_4S[:, :num].cpu(), sums_4S[:, num].cpu()
    pairs = [(value_4P, exact_4P, size_4P), (value_4, exact_4P.sum(1), size_4P.sum(1))]
    worst = 0.0
    for value, exact, size in pairs:
        same = (value == exact) | (value.isnan() & exact.isnan())
        worst = max(worst, float(torch.where(same, 0.0, (value - exact).abs() / size).nan_to_num(torch.inf).max()))
    return worst


def of_an_optimizer(name: str, device: str) -> dict[str, object]:
    """How far apart what the promise reads is by the kernel and by PyTorch's operators, and which asked the kernel."""
    torch.manual_seed(0)
    parameters = [nn.Parameter(torch.randn(shape, device=device)) for shape in ((60, 40), (7,), (300,))]
    groups = [{"params": parameters[:1], "lr": 0.02}, {"params": parameters[1:], "lr": 0.01}]
    optimizer = OPTIMIZERS[name](groups, device)
    for _ in range(9):
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
    updates = AffineUpdates(optimizer)
    of_group = [updates.groups[place] for place in (0, 1, 1)]
    gradients = [torch.randn_like(parameter) for parameter in parameters]
    found, asked = {}, {}
    for kernels in ("torch", "triton"):
        with_kernels, PREFERENCE.kernels = PREFERENCE.kernels, kernels  # type: ignore[assignment]
        affine = updates.of_all(parameters, of_group)
        alone = [updates.of(p, group) for p, group in zip(parameters, of_group, strict=True)]
        assert all(one is not None for one in affine)
        parts = [Part(g, one, r) for g, one, r in zip(gradients, affine, (1.0, 0.5, 0.5), strict=True) if one]
        found[kernels] = torch.stack([metric.sq_norm(parts), *metric.look_at(parts)]).tolist()
        asked[kernels] = metric._in_one_pass(parts, has_past=True) is not None
        weights = [
            float(one.weight / other.weight) - 1 for one, other in zip(affine, alone, strict=True) if one and other
        ]
        PREFERENCE.kernels = with_kernels
    ratios = [one / other - 1 for one, other in zip(found["triton"], found["torch"], strict=True)]
    return {"off": max(map(abs, [*ratios, *weights])), "asked": asked}


def _adamw(groups: list[dict[str, object]], device: str) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups, fused=device != "cpu")


def _counting_on_the_device(groups: list[dict[str, object]], device: str) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups, capturable=device != "cpu")


OPTIMIZERS: dict[str, Callable[[list[dict[str, object]], str], torch.optim.Optimizer]] = {
    "AdamW": _adamw,
    "AdamW that a graph may hold": _counting_on_the_device,
    "AMSGrad": lambda groups, device: torch.optim.Adam(groups, amsgrad=True),
}


ELSEWHERE = "a state that waits elsewhere"


def elsewhere(device: str) -> dict[str, object]:
    """Whether lists are left to others whose second moments or averages are not where the gradients are."""
    here = torch.ones(40, device=device)
    away = here.to("meta")
    lists = MultiTensor([40], [F32], device, kernels="triton")
    assert lists.in_metric([here], [here], [here], EPS, SCALE) is not None
    return {
        "is left": all(
            lists.in_metric([here], *other, EPS, SCALE) is None for other in (([away], [here]), ([here], [away]))
        )
    }


def check_any(name: str, device: str) -> dict[str, object]:
    """`check`, `of_an_optimizer` or `elsewhere`."""
    if name == ELSEWHERE:
        return elsewhere(device)
    return check(name, device) if name in CASES else of_an_optimizer(name, device)
