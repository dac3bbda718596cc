"""How long `noisescale report` takes for the records of a run on disk, without a server, and how large the file is."""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import percentile
from results_file import Figure, write
from smoke import size

import noisescale

LENGTHS = size((1_000, 100_000), (200,))
ROUNDS = size(3, 1)
SMALL_BATCH, BATCH, NOISE_SCALE = 8, 256, 3000.0
SECONDS_PER_STEP = 0.25


def log_run(folder: Path, num_steps: int) -> None:
    """A run of so many steps on disk that no server has seen, with a clock of its own."""
    os.environ |= {"NOISESCALE_MODE": "offline", "NOISESCALE_DIR": str(folder)}
    generator, now = random.Random(7), 1.79e9
    run = noisescale.init(
        project="report", task="norms", units=noisescale.Units(example="sequence"), planned_steps=2 * num_steps
    )
    run._main.now = run._main._log._now = lambda: now
    for _ in range(num_steps):
        now += SECONDS_PER_STEP
        noise, signal = NOISE_SCALE * generator.gauss(1, 0.1), max(1e-9, generator.gauss(1, 0.2))
        run.log_norms(
            small_batch_size=SMALL_BATCH,
            big_batch_size=BATCH,
            small_sq_norm=signal + noise / SMALL_BATCH,
            big_sq_norm=signal + noise / BATCH,
            loss=2.0,
            lr=0.1,
        )
    run.finish()


def seconds_of_report(folder: Path, output: Path) -> float:
    """Seconds of the whole command."""
    start = time.perf_counter()
    command = [str(Path(sys.executable).with_name("noisescale")), "report", str(folder), "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Entry point."""
    figures = []
    for num_steps in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            log_run(Path(folder), num_steps)
            output = Path(folder) / "report.html"
            seconds = [seconds_of_report(Path(folder), output) for _ in range(ROUNDS)]
            name = f"noisescale report of a folder, {num_steps:,} steps"
            figures.append(Figure(f"{name}, median of {ROUNDS}", percentile(seconds, 0.5), "s"))
            figures.append(Figure(f"{name}, the file", output.stat().st_size / 1e6, "MB", "at most 1"))
    write("report", figures)


if __name__ == "__main__":
    main()
