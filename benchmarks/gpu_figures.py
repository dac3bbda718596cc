"""What an H200 has shown, as rows of docs/evidence.md: each with its commit, and with what failed or was not run."""

from collections.abc import Iterator, Sequence

from measured_code import fingerprint
from results_file import read

Rows = Sequence[dict[str, str]]

KERNELS, CORRECTNESS = "kernels-nvidia-h200", "gpu_correctness-nvidia-h200"
PRODUCTS, STEPS = "gpu_outer_products-nvidia-h200", "gpu_steps-nvidia-h200"

MOST_OF_A_STEP = {"2048": "≤ 1.01 ×", "16384": "≤ 1.002 ×"}
"""By tokens of a micro-batch."""

MOST_OF_A_PRODUCT = 1.15

AMONG_OURSELVES = 1e-4
"""Limit of a row that compares a kernel with PyTorch's operators, and not with fp64."""

DENSE_LOOKS = 64
"""Steps in which the learning rate is looked at more often than at one in sixteen."""

NOT_RUN = ("not over after", "not measured", "not run", "cut off")
"""How a row begins that tells nothing of right or wrong."""

TRAININGS = "watched training"
TESTS = ("tests marked gpu", "compute-sanitizer")
"""Parts whose rows are tests."""


def table() -> Iterator[str]:
    """The whole table."""
    yield "| what | measured | target | of commit |\n|---|---|---|---|"
    for part in (_sums(), _cases(), _per_example(), _steps()):
        yield from part


def sums_of(dtype: str, operation: str, tensors: str = "gpt2-124M") -> dict[str, str]:
    """The row of ours.

    Args:
        dtype: Of the gradients.
        operation: What is summed up.
        tensors: Name of the set.
    """
    wanted = (tensors, dtype, operation, "noisescale")
    columns = ("set", "dtype", "operation", "contender")
    return next(row for row in read(KERNELS) if tuple(row[column] for column in columns) == wanted)


def per_example_ratios() -> dict[str, float]:
    """By shape of a Linear, time of the norms of its examples for that of its weight's gradient."""
    return {
        f"{row['outputs']} x {row['inputs']}": float(row["ratio_to_weight_gradient"])
        for row in read(PRODUCTS)
        if row["way"] == "noisescale"
    }


def right(rows: Rows) -> str:
    """How many of all cases are right, and the names of those that are not.

    Args:
        rows: Of the file of correctness, a case each.
    """
    not_run = [row["case"] for row in rows if row["misses"].startswith(NOT_RUN)]
    failed = [row["case"] for row in rows if row["misses"] and not row["misses"].startswith(NOT_RUN)]
    said = [f"{len(rows) - len(failed) - len(not_run)} of {len(rows)} right"]
    said += [f"failed: {', '.join(f'*{name}*' for name in failed)}"] if failed else []
    return "; ".join(said + ([f"not run: {', '.join(f'*{name}*' for name in not_run)}"] if not_run else []))


def tests(rows: Rows) -> str:
    """What the tests of a part have shown.

    Args:
        rows: Of the part; none where it was never begun.
    """
    if all(row["misses"].startswith(NOT_RUN) for row in rows):
        return f"not run: {rows[0]['misses']}" if rows else "not run"
    return right([row for row in rows if row["case"] != "all" or row["misses"]])


def of_commit(name: str, rows: Rows) -> str:
    """Of which commits rows are, and whether what they measure has changed since.

    Args:
        name: Of their file of results.
        rows: Some of it.
    """
    commits = ", ".join(dict.fromkeys(row["commit"].partition(",")[0] for row in rows))
    is_changed = any(row.get("code") != fingerprint(name) for row in rows)
    return f"{commits}, code changed since" if is_changed else commits


def _line(what: str, measured: str, target: str, name: str, rows: Rows) -> str:
    return f"| {what} | {measured} | {target} | {of_commit(name, rows) if rows else ''} |"


def _sums() -> Iterator[str]:
    large, small = sums_of("bf16", "norm", "llama-1B"), sums_of("bf16", "norm")
    added = [sums_of(dtype, "accumulate") for dtype in ("bf16", "fp32")]
    norms = [small, sums_of("fp32", "norm")]
    yield _line(
        "Σ g² of 1.24e9 gradients in bf16: time of the device; share of a read-only pass; launches",
        f"{float(large['device_us']) / 1e3:.2f} ms; {float(large['of_roofline']):.2f}; {large['launches']}",
        "≤ 0.62 ms (0.50 for 1e9); ≥ 0.92; constant",
        KERNELS,
        [large],
    )
    yield _line(
        "against `torch._foreach_norm(dtype=fp32)`, device: 1.24e9 gradients; GPT-2 small",
        f"{float(large['device_ratio']):.2f} ×; {float(small['device_ratio']):.2f} ×",
        "≤ 1 ×",
        KERNELS,
        [large, small],
    )
    for what, column in (("device", "device_ratio"), ("wall time", "wall_ratio")):
        yield _line(
            f"adding up and summing squares in one pass, against `torch._foreach_add_` alone, GPT-2 small, {what}: "
            "gradients in bf16; in fp32",
            "; ".join(f"{float(row[column]):.2f} ×" for row in added),
            "≤ 1.03 ×",
            KERNELS,
            added,
        )
    yield _line(
        f"Σ g² of the {small['tensors']} gradients of GPT-2 small, time of the host: in bf16; in fp32",
        "; ".join(f"{float(row['host_us']):.0f} µs" for row in norms),
        "≤ 100 µs for 2,000",
        KERNELS,
        norms,
    )


def _cases() -> Iterator[str]:
    rows = read(CORRECTNESS)
    trainings = [row for row in rows if row["part"] == TRAININGS]
    others = [row for row in rows if row["part"] not in (TRAININGS, *TESTS)]
    among_ourselves = [row for row in others if row["limit"] and float(row["limit"]) >= AMONG_OURSELVES]
    cases = [row for row in others if row not in among_ourselves]  # also those that broke off and have no limit
    largest = max(float(row["largest_error"]) for row in cases if row["largest_error"])
    what = "cases of kernels against fp64, 5e9 elements among them; largest error"
    yield _line(what, f"{right(cases)}; {largest:.1e}", "all; ≤ 1e-6", CORRECTNESS, cases)
    what = "cases of kernels against PyTorch's operators, whose terms nearly cancel"
    yield _line(what, right(among_ourselves), "all, to 1e-4", CORRECTNESS, among_ourselves)
    what = "whole watched trainings against gradients in fp64"
    yield _line(what, right(trainings), "all", CORRECTNESS, trainings)
    for part, what in zip(TESTS, ("tests marked `gpu`", "tests under `compute-sanitizer`"), strict=True):
        of_part = [row for row in rows if row["part"] == part]
        yield _line(what, tests(of_part), "all", CORRECTNESS, of_part)


def _per_example() -> Iterator[str]:
    ratios = per_example_ratios()
    above = ", ".join(shape for shape, ratio in ratios.items() if ratio > MOST_OF_A_PRODUCT)
    yield _line(
        "squared norms of each example's weight gradient, against the matrix product that makes the gradient, "
        f"{len(ratios)} shapes",
        f"{min(ratios.values()):.2f} – {max(ratios.values()):.2f} ×" + (f", above: {above}" if above else ""),
        f"≤ {MOST_OF_A_PRODUCT} ×",
        PRODUCTS,
        [row for row in read(PRODUCTS) if row["way"] == "noisescale"],
    )


def _steps() -> Iterator[str]:
    for row in read(STEPS):
        compiled, _, sharded = row["compiled"].partition(", ")
        how = "" if compiled == "eager" else f", torch.compile({compiled})"
        how += f", {sharded}" if sharded else ""
        passes = "one backward" if row["micro_batches"] == "1" else f"{row['micro_batches']} micro-batches"
        behind = f", behind the first {row['warm_up']} steps" if int(row["warm_up"]) > DENSE_LOOKS else ""
        what = f"step of {row['model']}, {passes} of {int(row['tokens']):,} tokens{how}, {row['mode']}{behind}"
        measured = row["status"]
        if row["ratio"]:
            measured = f"{float(row['ratio']):.3f} × [{float(row['ratio_low']):.3f}, {float(row['ratio_high']):.3f}]"
        target = MOST_OF_A_STEP.get(row["tokens"], "") if row["mode"] != "per example" else ""
        yield _line(what, measured, target, STEPS, [row])
