"""Are the kernels right on this device? Every case against fp64, then what only a device shows; gpu_correctness-*.csv.

Sums of lists and outer products in all the ways of the tests; graphs, two streams at once, lists of more than 2³¹
elements; whole watched trainings, also compiled, against gradients in fp64; then the tests marked `gpu`, and
compute-sanitizer where it is installed. Without a GPU, or with `--smoke`, Triton interprets and the rest is left out;
what is wrong there fails.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support"), str(ROOT / "tests/client/support")]

import torch  # noqa: E402

if __name__ == "__main__" and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

from benchmarks.gpu.watched_truth import WATCHED, watched_error  # noqa: E402
from benchmarks.kernels.items import CUT_OFF, Items, Key, is_cut_off  # noqa: E402
from benchmarks.kernels.results_table import Row  # noqa: E402
from benchmarks.smoke import IS_SMOKE  # noqa: E402
from client.kernels import layer_norm_cases, metric_cases, multi_tensor_cases, outer_products_cases  # noqa: E402
from noisescale.kernels import MultiTensor  # noqa: E402

COMMAND = "python benchmarks/gpu/correctness.py"

MOST_ERROR = 1e-6
"""Of any sum of squares; what a layer's backward gives back in the training's own type is rounded like that."""

ROUNDED = 1e-4
"""Between a kernel and operators that add products which nearly cancel in fp32."""

OF_INTERPRETER = ("fp32", "dots of two types", "accumulate bf16")
"""Cases that show in seconds that the stage runs."""

LEAST_TEST_SECONDS = 15
"""Below which tests are not begun: they import for as long."""

GPU_TESTS = (
    "tests/client/kernels",
    "tests/client/capture/test_nobody_waits.py",
    "tests/client/capture/test_accumulate_fp32.py",
)

TESTS, SANITIZED = "tests marked gpu", "compute-sanitizer"
"""Parts whose rows are tests, all of them one item."""

SANITIZER_TESTS = "sanitizer"
"""In the names of tests that run compute-sanitizer, which take minutes."""

Check = Callable[[], Row]


def error_row(error: float, limit: float, *, repeats: bool = True) -> Row:
    """What a row says of one comparison."""
    fault = "" if error <= limit and repeats else f"{error:.3g} > {limit:g}" if repeats else "not repeatable"
    return {"largest_error": error, "limit": limit, "repeats_bitwise": int(repeats), "misses": fault}


def of_lists(name: str, device: str) -> Row:
    """A case of `MultiTensor`."""
    found = multi_tensor_cases.check(name, "triton", device)
    errors = found["errors"]
    assert isinstance(errors, dict)
    row = error_row(max(errors.values()), MOST_ERROR, repeats=bool(found["is repeatable"]))
    if not (found["is fused"] and found["is complete"] and found["is added up"]):
        row["misses"] = f"not fused, complete or added up: {found}"
    return row


def of_outer_products(name: str, device: str) -> Row:
    """A case of the kernel of outer products."""
    found = outer_products_cases.check(name, device)
    return error_row(float(found["error"]), MOST_ERROR, repeats=bool(found["is repeatable"]))


def in_metric(name: str, device: str) -> Row:
    """A case of sums in the metric of an optimizer's step, or of an optimizer whose promise is summed up so."""
    found = metric_cases.check_any(name, device)
    if "off" in found:
        return error_row(float(found["off"]), ROUNDED)  # type: ignore[arg-type]
    return error_row(float(found["error"]), MOST_ERROR, repeats=bool(found["is repeatable"]))  # type: ignore[arg-type]


def of_norm_layers(name: str, device: str) -> Row:
    """A case of the kernel of LayerNorm and RMSNorm: its squared norms."""
    found = layer_norm_cases.check_kernel(name, device)
    errors = [value for key, value in _flat(found).items() if key.endswith("sq_norm_B")]
    return error_row(
        max(errors), 2e-5, repeats=bool(found["is_repeatable"] if "is_repeatable" in found else found["is repeatable"])
    )


def _flat(found: dict[str, object]) -> dict[str, float]:
    return {
        f"{variant}.{name}": float(value)
        for variant, errors in found.items()
        if isinstance(errors, dict)
        for name, value in errors.items()
    }


def in_a_graph() -> Row:
    """Lists that move and grow in value between replays."""
    sizes, worst = (70_000, 5, 3000, 1), 0.0
    lists = MultiTensor(sizes, (torch.bfloat16,) * 4, "cuda", (0, 0, 1, 1), 2, kernels="triton")
    bound = [torch.randn(size, device="cuda").bfloat16() for size in sizes]
    lists.sq_norms(bound)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sums = lists.sq_norms(bound)
    for factor in (1.0, 3.0, 0.125, 100.0):
        for tensor in bound:
            tensor.mul_(factor)
        for _ in range(7):
            lists.sq_norms([torch.randn(size, device="cuda").bfloat16() for size in sizes])
        graph.replay()
        exact = torch.stack([tensor.double().square().sum() for tensor in bound])
        worst = max(worst, float(((sums.sq_norm[:4] - exact).abs() / exact).max()))
    return error_row(worst, MOST_ERROR)


def in_two_streams(calls: int = 300) -> Row:
    """Two streams sum up lists that move, all calls in the queue at once: no table is overwritten before it is read."""
    sizes, found = (100_000, 17, 4096), []
    lists = MultiTensor(sizes, (torch.float32,) * 3, "cuda", kernels="triton")
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    tensors = [[torch.randn(size, device="cuda") for size in sizes] for _ in range(40)]
    lists.sq_norms(tensors[0])
    torch.cuda.synchronize()
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
    for call in range(calls):
        with torch.cuda.stream(streams[call % 2]):
            found.append((call % 40, lists.sq_norms(tensors[call % 40]).sq_norm[:3].clone()))
    torch.cuda.synchronize()
    exact = [torch.stack([tensor.double().square().sum() for tensor in each]) for each in tensors]
    return error_row(max(float(((sums - exact[of]).abs() / exact[of]).max()) for of, sums in found), MOST_ERROR)


def of_more_than_two_to_the_31(sizes: tuple[int, ...]) -> Row:
    """Elements that 32 bits do not count, in one tensor or in a list of several."""
    tensors = [torch.randn(size, dtype=torch.bfloat16, device="cuda") for size in sizes]
    lists = MultiTensor(sizes, (torch.bfloat16,) * len(sizes), "cuda", kernels="triton")
    sums = lists.sq_norms(tensors).sq_norm
    piece = 1 << 27
    exact = torch.stack(
        [torch.stack([part.double().square().sum() for part in tensor.split(piece)]).sum() for tensor in tensors]
    )
    return error_row(float(((sums[: len(sizes)] - exact).abs() / exact).max()), MOST_ERROR)


def checks(*, on_gpu: bool) -> Iterator[tuple[str, str, Check]]:
    """Part, name and what to do, in order."""
    device = "cuda" if on_gpu else "cpu"
    short = IS_SMOKE or not on_gpu
    for name in OF_INTERPRETER if short else multi_tensor_cases.CASES:
        yield "sums of lists", name, lambda name=name: of_lists(name, device)  # type: ignore[misc]
    for name in [*metric_cases.CASES, *metric_cases.OPTIMIZERS][: 2 if short else None]:
        yield "sums in an optimizer's metric", name, lambda name=name: in_metric(name, device)  # type: ignore[misc]
    for name in list(outer_products_cases.CASES)[: 2 if short else None]:
        yield "outer products", name, lambda name=name: of_outer_products(name, device)  # type: ignore[misc]
    for name in list(layer_norm_cases.CASES)[: 2 if short else None]:
        yield "normalisation layers", name, lambda name=name: of_norm_layers(name, device)  # type: ignore[misc]
    for name, case in WATCHED.items():
        if on_gpu or case.runs_without_gpu:
            yield "watched training", name, lambda case=case: error_row(watched_error(case, device), case.limit)  # type: ignore[misc]
    if on_gpu:
        yield "device", "replays of a graph beside calls", in_a_graph
        yield "device", "two streams, 300 calls in the queue", in_two_streams
        if not IS_SMOKE:
            yield "device", "one tensor of 5e9 elements", lambda: of_more_than_two_to_the_31((5_000_000_000,))
            yield "device", "three tensors of 1e9 elements", lambda: of_more_than_two_to_the_31((1_000_000_007,) * 3)


def command_of_tests(part: str, report: Path) -> list[str]:
    """What runs the tests of a part.

    Args:
        part: `TESTS`, or `SANITIZED` for those that run compute-sanitizer and no others.
        report: Where pytest writes what each test has shown.
    """
    # kernels are compiled one after the other: several processes fill Triton's cache for all that follows
    workers = ["--numprocesses", str(min(12, os.cpu_count() or 1))] if shutil.which("nvidia-smi") else []
    chosen = SANITIZER_TESTS if part == SANITIZED else f"not {SANITIZER_TESTS}"
    return [
        *(sys.executable, "-m", "pytest", "-q", "-c", str(Path(__file__).with_name("pytest.ini"))),
        *("--rootdir", str(ROOT), "-m", "gpu", "-k", chosen, f"--junitxml={report}"),
        *workers,
        *(str(ROOT / tests) for tests in GPU_TESTS),
    ]


def rows_of_tests(part: str, limit_seconds: float) -> Iterator[Row]:
    """Tests marked `gpu`, each as a row.

    Args:
        part: See `command_of_tests`.
        limit_seconds: They are ended after.
    """
    if part == SANITIZED and shutil.which("compute-sanitizer") is None:
        yield {"part": part, "case": "all", "misses": "not run: compute-sanitizer is not installed"}
        return
    report = Path(os.environ.get("TMPDIR", "/tmp")) / f"noisescale-gpu-tests-{os.getpid()}.xml"
    command = command_of_tests(part, report)
    try:
        finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit_seconds, check=False)
    except subprocess.TimeoutExpired:
        yield {"part": part, "case": "all", "misses": f"{CUT_OFF} after {limit_seconds:.0f} s"}
        return
    if not report.exists():
        print(finished.stdout[-4000:], finished.stderr[-4000:], file=sys.stderr)
        yield {"part": part, "case": "all", "misses": f"pytest ended with {finished.returncode}"}
        return
    for test in ElementTree.parse(report).getroot().iter("testcase"):
        fault = next((child for child in test if child.tag in ("failure", "error", "skipped")), None)
        said = "" if fault is None else f"{fault.tag}: {fault.get('message', '')[:300]}"
        name = f"{test.get('classname', '').rpartition('.')[2]}::{test.get('name')}"
        yield {"part": part, "case": name, "seconds": float(test.get("time", 0)), "misses": said}
    report.unlink()


def key_of(row: Row) -> Key:
    """Each case is an item, and so are all tests of a part together."""
    part = str(row["part"])
    return (part,) if part in (TESTS, SANITIZED) else (part, str(row["case"]))


def key(one: tuple[str, str, Check]) -> Key:
    """Of the row that a case becomes."""
    return one[:2]


def key_of_tests(part: str) -> Key:
    """Of the rows that the tests of a part become."""
    return (part,)


def row_of(part: str, case: str, check: Check) -> Row:
    """What a case shows, also where it breaks off with an error."""
    began = time.monotonic()
    try:
        row = check()
    except Exception as fault:
        row = {"misses": f"{type(fault).__name__}: {str(fault)[:300]}".replace(f"{ROOT}/", "")}
    return {"part": part, "case": case, **row, "seconds": time.monotonic() - began}


def main() -> None:
    """Check, print what misses, and write each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="of all; what is not begun by then is left out")
    parser.add_argument("--again", action="store_true", help="also cases that this very code has been checked in")
    arguments = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    torch.set_num_threads(1)
    start = time.monotonic()
    device = torch.device("cuda", 0) if on_gpu else torch.device("cpu")
    kept = Items(
        "gpu_correctness", device, key_of, command=COMMAND, seconds=arguments.seconds, is_again=arguments.again,
        is_written=on_gpu,
    )  # fmt: skip
    rows: list[Row] = []
    for part, case, check in kept.in_time(kept.missing(checks(on_gpu=on_gpu), key), key):
        row = row_of(part, case, check)
        rows.append(row)
        kept.add([row])
        if row.get("misses"):
            print(f"{part}: {case}: {row['misses']}", flush=True)
        if on_gpu:
            torch.cuda.empty_cache()
    print(f"checks: {time.monotonic() - start:.0f} s", flush=True)
    parts_of_tests = kept.missing((TESTS, SANITIZED) if on_gpu and not IS_SMOKE else (), key_of_tests)
    for part in kept.in_time(parts_of_tests, key_of_tests, LEAST_TEST_SECONDS):
        found = list(rows_of_tests(part, kept.seconds_left()))
        rows += found
        kept.add(found, is_over=not any(is_cut_off(row) for row in found))
    for left in kept.left:  # so that the file tells what has never been checked
        if not kept.is_known(left):
            kept.add([{"part": left[0], "case": (*left, "all")[1], "misses": f"{CUT_OFF}: no time left"}])
    parts = dict.fromkeys(str(row["part"]) for row in rows)
    for part in parts:
        of_part = [row for row in rows if row["part"] == part]
        faults = [row for row in of_part if row.get("misses")]
        errors = [float(row["largest_error"]) for row in of_part if "largest_error" in row]
        worst = f", largest error {max(errors):.2e}" if errors else ""
        print(f"{part}: {len(of_part) - len(faults)} of {len(of_part)} right{worst}")
        for row in faults:
            print(f"  {json.dumps(row['case'])}: {row['misses']}")
    print(f"{time.monotonic() - start:.0f} s")
    if (IS_SMOKE or not on_gpu) and any(row.get("misses") for row in rows):
        sys.exit(1)
    kept.end()


if __name__ == "__main__":
    main()
