"""Lists of tensors in all the ways in which MultiTensor sums them up, and what is right by the plainest formula."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from noisescale.kernels import GradientSums, MultiTensor, SignSums
from noisescale.kernels.layout import CHUNK

F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64

AWKWARD = (0, 1, 5, 4097, CHUNK - 1, CHUNK, CHUNK + 1)

FACTORS = (2.5, 0.625)

EPS, CORRECTION = 1e-3, 0.25


@dataclass(frozen=True)
class Case:
    """One call; its name says what is special about it."""

    method: str
    sizes: tuple[int, ...] = (700, 3, 2048)
    dtypes: tuple[torch.dtype, ...] | torch.dtype = F32
    other_dtypes: tuple[torch.dtype, ...] | torch.dtype | None = None
    groups: tuple[int, ...] | None = None
    num_groups: int = 0
    missing: tuple[int, ...] = ()
    other_missing: tuple[int, ...] = ()
    layout: str = "contiguous"
    other_layout: str = "contiguous"
    magnitude: float = 1.0
    is_equal: bool = False
    planted: tuple[tuple[int, int, float], ...] = ()
    other_planted: tuple[tuple[int, int, float], ...] = ()
    scale: float | None = None
    numbers: str = "host"
    num_copies: int = 0


CASES = {
    "fp32": Case("sq_norms", AWKWARD),
    "bf16": Case("sq_norms", AWKWARD, BF16),
    "fp16": Case("sq_norms", AWKWARD, F16),
    "fp64": Case("sq_norms", (0, 1, 5000), F64),
    "mixed types in groups": Case(
        "sq_norms", (7, 5000, 1, 300, 0, CHUNK + 9), (F32, BF16, F16, F32, BF16, BF16), None, (1, 0, -1, 1, 2, 1), 4
    ),
    "one tensor": Case("sq_norms", (1,)),
    "sixteen tensors": Case("sq_norms", tuple(range(16))),
    "missing": Case("sq_norms", missing=(1,), groups=(0, 0, 1), num_groups=2),
    "all missing": Case("sq_norms", missing=(0, 1, 2)),
    "all empty": Case("sq_norms", (0, 0), groups=(0, 0), num_groups=1),
    "odd addresses": Case("sq_norms", (1, 4096, CHUNK + 5), layout="odd"),
    "odd addresses, bf16": Case("sq_norms", (3, 4096, 5001), BF16, layout="odd"),
    "transposed": Case("sq_norms", (600, 3000), layout="transposed"),
    "with gaps": Case("sq_norms", (600, 3000), layout="gaps", num_copies=2),
    "sparse": Case("sq_norms", (600, 3000), layout="sparse"),
    "planted": Case(
        "sq_norms", (CHUNK + 900, 5000, 40), planted=((0, 3, torch.nan), (0, CHUNK + 7, torch.inf), (2, 39, -torch.inf))
    ),
    "planted, fp16": Case("sq_norms", (5000, 40), F16, planted=((0, 4999, torch.nan), (0, 0, -torch.inf))),
    "squares that overflow": Case("sq_norms", (5000, 40), magnitude=1e25),
    "squares that hardly are": Case("sq_norms", (5000, 40), BF16, magnitude=1e-21),
    "equal elements": Case("sq_norms", (CHUNK,) * 6, is_equal=True),
    "equal elements, bf16": Case("sq_norms", (CHUNK,) * 3, BF16, is_equal=True),
    "unscaled": Case("sq_norms", (5000, 40), F16, scale=2.0**-16),
    "dots": Case("dots", AWKWARD, groups=(0, 0, 1, 1, 1, 0, 0), num_groups=2),
    "dots of two types": Case("dots", (5000, 40), BF16, F32),
    "dots of three types": Case("dots", (500, 40, 7), (BF16, BF16, F32), (F32, BF16, F16), num_copies=1),
    "dots with fp64": Case("dots", (500, 40), F32, F64),
    "dots, missing": Case("dots", missing=(0,), other_missing=(0, 2)),
    "dots, odd addresses": Case("dots", (5000, 40), other_layout="odd"),
    "dots, both transposed": Case("dots", (600, 3000), layout="transposed", other_layout="transposed"),
    "dots, one transposed": Case("dots", (600, 3000), layout="transposed", num_copies=2),
    "dots, one sparse": Case("dots", (600, 3000), layout="sparse"),
    "dots, planted": Case("dots", planted=((0, 5, torch.nan),), other_planted=((0, 6, torch.inf), (2, 0, torch.nan))),
    "dots that overflow": Case("dots", (5000, 40), magnitude=1e25, scale=0.5),
    "accumulate": Case("accumulate", (0, 1, 5, 4097, CHUNK + 1)),
    "accumulate bf16": Case("accumulate", (5000, 40), BF16, F32, (0, 1), 2),
    "accumulate fp16, unscaled": Case("accumulate", (5000, 40), F16, F32, scale=2.0**-12),
    "accumulate fp64": Case("accumulate", (5000, 40), F64, F64),
    "accumulate, missing": Case("accumulate", missing=(1,)),
    "accumulate, odd addresses": Case("accumulate", (5000, 40), other_layout="odd"),
    "accumulate, planted": Case("accumulate", (5000, 40, 3), planted=((0, 4999, torch.nan), (2, 0, torch.inf))),
    "preconditioned": Case("preconditioned", AWKWARD[:5], other_planted=((3, 7, 0.0), (3, 8, 0.0))),
    "preconditioned bf16": Case("preconditioned", (5000, 40), BF16, F32, (1, 0), 2, numbers="each"),
    "preconditioned, numbers on the device": Case("preconditioned", scale=0.25, numbers="device"),
    "preconditioned, missing": Case("preconditioned", missing=(0,), other_missing=(1,)),
    "preconditioned, planted": Case(
        "preconditioned", planted=((0, 5, torch.nan), (0, 6, torch.inf)), other_planted=((0, 5, 0.0),)
    ),
    "signs": Case("sign_statistics", AWKWARD[:5], planted=((3, 7, 0.0), (3, 8, 0.0)), other_planted=((3, 8, 0.0),)),
    "signs in groups": Case("sign_statistics", groups=(0, 1, 0), num_groups=2, other_layout="odd"),
    "signs, missing": Case("sign_statistics", missing=(0,), other_missing=(1,)),
    "signs, planted": Case("sign_statistics", planted=((0, 5, torch.nan),), other_planted=((2, 6, torch.inf),)),
}


def each(case: Case, dtypes: tuple[torch.dtype, ...] | torch.dtype | None) -> tuple[torch.dtype, ...]:
    """One type for each tensor."""
    return dtypes if isinstance(dtypes, tuple) else (dtypes or F32,) * len(case.sizes)


def make_lists(case: Case, device: str) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """Both lists, the same numbers on every device; second moments are positive."""
    generator = torch.Generator().manual_seed(1)
    lists = []
    for number, (dtypes, layout, missing, planted) in enumerate(
        [
            (each(case, case.dtypes), case.layout, case.missing, case.planted),
            (each(case, case.other_dtypes), case.other_layout, case.other_missing, case.other_planted),
        ]
    ):
        tensors: list[Tensor | None] = []
        for index, (size, dtype) in enumerate(zip(case.sizes, dtypes, strict=True)):
            shape = (1,) if case.is_equal else (size,)
            values = torch.randn(shape, generator=generator, dtype=F64).expand(size) * case.magnitude
            values = values.abs() + 0.01 if number and case.method == "preconditioned" else values
            values = values.clone()
            for tensor, element, value in planted:
                if tensor == index:
                    values[element] = value
            tensors.append(None if index in missing else laid_out(values.to(device, dtype), layout))
        lists.append(tensors)
    return lists[0], lists[1]


def laid_out(values: Tensor, layout: str) -> Tensor:
    """The same elements, in rows of 20 where that comes out even, elsewhere in memory."""
    if layout == "odd":
        values = torch.cat([values[:1], values])[1:]
    rows = values.view(-1, 20) if values.numel() % 20 == 0 else values
    if layout == "transposed":
        return rows.t().contiguous().t()
    if layout == "gaps":
        return torch.stack([rows, rows], dim=2)[:, :, 0]
    if layout == "sparse":
        index = torch.arange(len(rows), device=values.device).repeat(2)[None]
        return torch.sparse_coo_tensor(index, torch.cat([rows / 2, rows / 2]), rows.shape, check_invariants=True)
    return rows


def call(case: Case, kernels: str, device: str) -> tuple[GradientSums | SignSums, MultiTensor, list[Tensor | None]]:
    """What MultiTensor gives, itself, and the second list after the call."""
    first, other = make_lists(case, device)
    multi_tensor = MultiTensor(
        case.sizes, each(case, case.dtypes), device, case.groups, case.num_groups, kernels=kernels
    )
    scale = None if case.scale is None else torch.full((1,), case.scale, device=device)
    if case.method == "sq_norms":
        return multi_tensor.sq_norms(first, scale), multi_tensor, other
    if case.method == "dots":
        return multi_tensor.dots(first, other, scale), multi_tensor, other
    if case.method == "accumulate":
        return multi_tensor.accumulate(other, first, scale), multi_tensor, other
    if case.method == "sign_statistics":
        return multi_tensor.sign_statistics(first, other, FACTORS), multi_tensor, other
    eps, correction = EPS, CORRECTION
    if case.numbers == "each":
        eps, correction = [EPS] * len(case.sizes), [CORRECTION] * len(case.sizes)
    if case.numbers == "device":
        correction = torch.tensor(CORRECTION, dtype=F64, device=device)
    return multi_tensor.preconditioned(first, other, eps, correction, scale), multi_tensor, other


def expected(case: Case) -> dict[str, Tensor]:
    """The sums [S], fp64, and what relative errors refer to."""
    first, other = make_lists(case, "cpu")
    columns: list[dict[str, Tensor]] = []
    for index, (x, y) in enumerate(zip(first, other, strict=True)):
        zeros = torch.zeros(case.sizes[index], dtype=F64)
        x = zeros if x is None else x.to_dense().double().reshape(-1)
        y = zeros if y is None or case.method == "sq_norms" else y.to_dense().double().reshape(-1)
        if case.method == "accumulate":
            y = (y.to(each(case, case.other_dtypes)[index]) + x.to(each(case, case.other_dtypes)[index])).double()
        columns.append(
            formula(case, x, y) | {"num_nonfinite": ((~x.isfinite()).sum() + (~y.isfinite()).sum()).double()}
        )
    groups = case.groups or (-1,) * len(columns)
    result = {}
    for name in columns[0]:
        values = [column[name] for column in columns]
        members = [[v for v, group in zip(values, groups, strict=True) if group == g] for g in range(case.num_groups)]
        result[name] = torch.stack([*values, *(torch.stack([*m, torch.zeros(()).double()]).sum() for m in members),
                                    torch.stack(values).sum()])  # fmt: skip
    return result


def formula(case: Case, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The sums over one tensor."""
    scale = case.scale or 1.0
    if case.method == "sq_norms":
        return {"sq_norm": (x * scale).square().sum()}
    if case.method == "preconditioned":
        divisor = (y / CORRECTION).sqrt() + EPS
        kept = torch.where(y == 0, torch.where(x.isfinite(), 0.0, torch.nan), x * scale / divisor)
        return {"sq_norm": kept.square().sum()}
    if case.method == "sign_statistics":
        a, b = x * FACTORS[0], y * FACTORS[1]
        return {
            "distance": (a - b).abs().sum(),
            "upper": (a.abs().sum() + b.abs().sum()) / 2,
            "lower": ((a.sign() * b).sum() + (b.sign() * a).sum()) / 2,
        }
    sums = {"sq_norm": (x * scale).square().sum(), "other_sq_norm": (y * scale).square().sum()}
    return sums | ({"dot": (x * scale * y * scale).sum()} if case.method == "dots" else {})


def relative_errors(case: Case, found: GradientSums | SignSums) -> dict[str, float]:
    """The largest error of each sum; what may cancel is compared with what it cannot exceed."""
    right = expected(case)
    errors = {}
    for name, exact in right.items():
        value = getattr(found, name).cpu()
        if name == "dot":
            size = (right["sq_norm"] * right["other_sq_norm"]).sqrt()
        else:
            size = right["upper"] if name == "lower" else exact
        same = (value == exact) | (value.isnan() & exact.isnan())
        error = torch.where(same, 0.0, (value - exact).abs() / size)
        errors[name] = float(error.nan_to_num(torch.inf).max())
    return errors


def check(name: str, kernels: str, device: str) -> dict[str, object]:
    """How far off a case is, whether it repeats in every bit, and what it copied."""
    case = CASES[name]
    found, multi_tensor, other = call(case, kernels, device)
    again, _, _ = call(case, kernels, device)
    pairs = [(getattr(found, field.name), getattr(again, field.name)) for field in fields(found)]
    given = {field.name for field in fields(found) if getattr(found, field.name) is not None} - {"num_tensors"}
    summed = added_up(case, device) if case.method == "accumulate" else []
    return {
        "errors": relative_errors(case, found),
        "is complete": given == set(expected(case)) and found.num_tensors == len(case.sizes),
        "is repeatable": all(same_bits(a, b) for a, b in pairs if isinstance(a, Tensor)),
        "is added up": all(same_bits(a, b) for a, b in zip(other, summed, strict=False) if a is not None),
        "num_copies": multi_tensor.num_copies,
        "is fused": multi_tensor.is_fused,
    }


def added_up(case: Case, device: str) -> list[Tensor | None]:
    """The second list after the first was added by PyTorch."""
    first, other = make_lists(case, device)
    return [y if x is None or y is None else y.add_(x) for x, y in zip(first, other, strict=True)]


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal, NaN to NaN."""
    return bool(torch.equal(a.nan_to_num(nan=-1.5), b.nan_to_num(nan=-1.5)))
