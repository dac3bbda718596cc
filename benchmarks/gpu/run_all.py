"""All that is measured where there is a GPU, in five stages, the most telling first.

    python benchmarks/gpu/run_all.py                   all stages, at most eight minutes each
    python benchmarks/gpu/run_all.py --stages kernels,steps --minutes 4
    python benchmarks/gpu/run_all.py --dry-run         each stage in its smoke form, on any machine

Each script is a process of its own, so that a crash or a limit of time costs that script alone; it writes its rows to
`benchmarks/results/` as they come, and a table of them as Markdown beside. Items whose rows are of this very code and
device are left out, unless `--again` is given: what was cut off goes on where it was, but for the training of the
language model, which begins anew (`benchmarks/kernels/items.py`).
"""

import argparse
import csv
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.kernels.items import IS_LEFT
from benchmarks.kernels.results_table import results_name
from benchmarks.results_file import RESULTS, ROOT

MOST_COLUMNS = ("commit", "machine", "load", "date", "command", "code", "device", "torch", "cuda", "triton")


@dataclass(frozen=True, slots=True)
class Part:
    """One script of a stage.

    Attributes:
        script: Below benchmarks/.
        results: Name of what it writes, without the device.
        share: Of the stage's time.
    """

    script: str
    results: str
    share: float = 1.0


STAGES: dict[str, tuple[Part, ...]] = {
    "correctness": (Part("gpu/correctness.py", "gpu_correctness"),),
    "kernels": (
        Part("kernels/benchmark_kernels.py", "kernels", 0.6),
        Part("gpu/outer_products.py", "gpu_outer_products", 0.4),
    ),
    "steps": (Part("gpu/steps.py", "gpu_steps"),),
    "tuning": (Part("gpu/tuning.py", "gpu_tuning"),),
    "language_model": (Part("gpu/language_model.py", "gpu_language_model"),),
}


DONE = "done"


def run(part: Part, seconds: float, *, is_dry: bool, is_again: bool) -> str:
    """Run one script; how it ended, as a word.

    Args:
        part: Which.
        seconds: It begins nothing new after so long, and is ended a minute later.
        is_dry: In its smoke form.
        is_again: Also what has been measured already.
    """
    arguments = ["--smoke"] if is_dry else ["--seconds", f"{seconds:.0f}", *(["--again"] if is_again else [])]
    command = [sys.executable, str(ROOT / "benchmarks" / part.script), *arguments]
    try:
        code = subprocess.run(command, cwd=ROOT, timeout=seconds + 60, check=False, env=os.environ).returncode
    except subprocess.TimeoutExpired:
        return "ended after its time, call again to go on"
    return {0: DONE, IS_LEFT: "cut off, call again to go on"}.get(code, f"failed with {code}")


def write_table(part: Part, device: torch.device) -> None:
    """The rows of a file of results as Markdown beside it; what is the same in all of them stands above."""
    path = RESULTS / f"{results_name(part.results, device)}.csv"
    if not path.exists():
        return
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    same = [name for name in MOST_COLUMNS if len({row.get(name, "") for row in rows}) == 1]
    columns = [name for name in rows[0] if name not in same and any(row[name] for row in rows)]
    lines = [
        f"# {path.stem}",
        "",
        ", ".join(f"{name}: {rows[0][name]}" for name in same if name in rows[0]),
        "",
    ]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(row[name].replace('|', '·') for name in columns)} |" for row in rows]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Run the stages that are asked for; say how each ended. Exits with 1 where one is not done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", default=",".join(STAGES), help="names, separated by commas")
    parser.add_argument("--minutes", type=float, default=8, help="for each stage")
    parser.add_argument("--again", action="store_true", help="also what has been measured already")
    parser.add_argument("--dry-run", action="store_true", help="smoke forms: that everything runs, and no figure")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.stages.split(",") if name not in STAGES]
    if unknown:
        parser.error(f"--stages has {', '.join(unknown)}: there are {', '.join(STAGES)}")
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cpu" and not arguments.dry_run:
        parser.error("there is no CUDA device here: --dry-run shows that every stage runs")
    said: list[str] = []
    are_done = True
    for name in arguments.stages.split(","):
        for part in STAGES[name]:
            start = time.monotonic()
            seconds = 60 * arguments.minutes * part.share
            ended = run(part, seconds, is_dry=arguments.dry_run, is_again=arguments.again)
            are_done &= ended == DONE
            said.append(f"{part.script}: {ended}, {time.monotonic() - start:.0f} s")
            if not arguments.dry_run:
                write_table(part, device)
    print("\n".join(said))
    sys.exit(0 if are_done else 1)


if __name__ == "__main__":
    main()
