"""Figures and times of `noisescale reproduce` for given seeds, as `benchmarks/results/reproduce.csv`.

    python benchmarks/benchmark_reproduce.py --quick --seeds 0 1 2 3 4
    python benchmarks/benchmark_reproduce.py --seeds 0 1 2

Each seed is one process of the command. Folders that are there are finished, not run again; rows of other seeds and of
the other variant stay in the file. The time of a seed is that of its whole run; a resumed one has none.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from results_file import RESULTS, read, write_rows
from smoke import IS_SMOKE

WHAT = "reproduce"
HEADLINE = ("near_critical", "ideal_steps", "all_batches")
FIGURES = ("r_squared_of_fit", "r_squared_of_identity", "rms_factor", "within_factor_2", "within_factor_3", "slope")
KEY = ("variant", "seed")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the seeds, print their rows and keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, default=Path("/tmp/noisescale-reproduce"), help="one below it a seed")
    arguments = parser.parse_args(argv)
    if IS_SMOKE:
        arguments.folder = Path(tempfile.mkdtemp())
    variant = "quick" if arguments.quick or IS_SMOKE else "full"
    for seed in arguments.seeds:
        folder = arguments.folder / f"{variant}-{seed}"
        seconds = {"seconds": _run(folder, variant, seed, arguments.processes)}
        rows = [_described(row) | seconds for row in _rows(folder, variant, seed, arguments.processes)]
        _keep(variant, seed, rows)
        for row in rows:
            print(row)


def _keep(variant: str, seed: int, rows: Sequence[dict[str, object]]) -> None:
    """Rows of other seeds and of the other variant stay as they are."""
    before = read(WHAT) if (RESULTS / f"{WHAT}.csv").exists() else []
    others = [row for row in before if tuple(row[name] for name in KEY) != (variant, str(seed))]
    quick = " --quick" if variant == "quick" else ""
    write_rows(WHAT, rows, command=f"python benchmarks/benchmark_reproduce.py{quick} --seeds {seed}", kept=others)


def _run(folder: Path, variant: str, seed: int, processes: int) -> str:
    is_resumed = folder.exists()
    command = [sys.executable, "-c", "import sys; from noisescale.commands import main; sys.exit(main(sys.argv[1:]))"]
    command += ["reproduce", "--no-server", "--seed", str(seed), "--folder", str(folder)]
    command += ["--processes", str(processes), *(["--quick"] if variant == "quick" else [])]
    command += ["--tasks", "iris_softmax"] if IS_SMOKE else []
    start = time.perf_counter()
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return "" if is_resumed else f"{time.perf_counter() - start:.0f}"


def _rows(folder: Path, variant: str, seed: int, processes: int) -> Iterator[dict[str, object]]:
    """One row for each average, hardest and all targets, with and without own and label-noise tasks."""
    found = json.loads((folder / "summary" / "summary.json").read_text())
    hooks = [one for one in found["hooks"] if one["num_compared"]]
    num_windows = sum(one["num_windows"] for one in hooks)
    common = {
        "variant": variant,
        "seed": seed,
        "processes": processes,
        "hooks_bounded": sum(one["num_bounded"] for one in hooks) / num_windows,
        "hooks_holding": sum(one["num_holding"] for one in hooks) / sum(one["num_compared"] for one in hooks),
        "hooks_lowest_ratio": min(one["median_ratio"] for one in hooks),
        "hooks_highest_ratio": max(one["median_ratio"] for one in hooks),
    }
    for one in found["series"]:
        if one["average"] in HEADLINE and one["agreement"] is not None:
            figures = {"decades": one["agreement"]["decades"]}
            for name in FIGURES:
                figures |= {name if end == "value" else f"{name}_{end}": v for end, v in one["agreement"][name].items()}
            head = {"average": one["average"], "targets": one["targets"], "tasks": one["tasks"]}
            yield common | head | {"points": len(one["points"]), "scored": one["agreement"]["num_tasks"]} | figures


def _described(row: dict[str, object]) -> dict[str, object]:
    return {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in row.items()}


if __name__ == "__main__":
    main()
