"""`make mutants`: a hundred small bugs drawn at random, planted one by one; the quick tests have to see them.

    python benchmarks/mutants.py --seed 2 --count 100 [--file part-of-a-path]

Each goes into a copy of the checkout, where the tests of its file (`mutation/tests_of.py`) run up to the first that
fails. What survives is explained in `mutation/explained.toml`.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from mutation.drawing import Mutant, drawn, mutants_of
from mutation.running_postgres import running_postgres
from mutation.table import Row, explain, row_of, summary
from mutation.tests_of import TESTS
from mutation.trying import Verdict, Workshop
from results_file import read, write_rows
from smoke import IS_SMOKE, size

ROOT = Path(__file__).parents[1]
COUNT = 100
LONGEST_SECONDS = 300.0
DOUBTS = 3

Tried = tuple[Mutant, Verdict]


def main() -> int:
    """The exit code: 1 where a survivor is not explained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=size(COUNT, 1), help="how many")
    parser.add_argument(
        "--file", default=size("", "transport/spool/loss_book.py"), help="only files with this in their path"
    )
    parser.add_argument("--jobs", type=int, default=size(os.cpu_count() or 1, 1), help="side by side")
    parser.add_argument("--explain", action="store_true", help="try nothing: put the explanations into the last table")
    asked = parser.parse_args()
    if asked.explain:
        return explain_again()
    files = {file: tests for file, tests in TESTS.items() if asked.file in file}
    candidates = drawn((one for file in files for one in mutants_of(ROOT, file)), asked.seed)
    print(f"{len(candidates)} mutants of {len(files)} files; seed {asked.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="noisescale-mutants-") as folder,
        running_postgres() as postgres,
    ):
        shops = [workshop(Path(folder) / f"{number}", postgres) for number in range(asked.jobs)]
        check_sound(shops[0], {test for one in candidates[: asked.count] for test in TESTS[one.file]})
        tried = try_out(candidates, asked.count, shops)
    return report(tried, asked.seed)


def workshop(folder: Path, postgres: str) -> Workshop:
    """A copy of this checkout in a folder."""
    return Workshop(ROOT, folder, postgres=postgres, longest_seconds=LONGEST_SECONDS)


def check_sound(shop: Workshop, tests: Collection[str]) -> None:
    """Return where the tests pass without any bug; what fails once and then passes, as clocks do, may do so thrice.

    Raises:
        RuntimeError: Where one fails: then it says nothing about mutants.
    """
    left, seconds = sorted(tests), 0.0
    for _ in range(DOUBTS):
        found = shop.run(left, longest_seconds=4 * LONGEST_SECONDS)
        seconds += found.seconds
        if found.outcome == "survived":
            print(f"all tests without a bug: {seconds:.0f} s", flush=True)
            return
        if not found.by or shop.run([found.by]).outcome != "survived":
            break
        print(f"failed once and passes alone: {found.by}", flush=True)
        left = [test for test in left if test >= found.by.partition("::")[0]]
    raise RuntimeError(f"without any bug {found.by or 'a test'} fails ({found.outcome}): mend that first")


def try_out(candidates: Sequence[Mutant], count: int, shops: Sequence[Workshop]) -> list[Tried]:
    """The first `count` candidates that are programs, each with its verdict."""
    waiting = iter(candidates)
    found: list[Tried] = []
    lock = Lock()

    def work(shop: Workshop) -> None:
        for mutant in _still_wanted(waiting, lock, found, count):
            verdict = shop.attempt(mutant, TESTS[mutant.file])
            with lock:
                if verdict.outcome != "stillborn" and len(found) < count:
                    found.append((mutant, verdict))
                    print(f"{len(found):>4} {told(mutant, verdict)}", flush=True)

    with ThreadPoolExecutor(len(shops)) as pool:
        for future in [pool.submit(work, shop) for shop in shops]:
            future.result()
    return found


def told(mutant: Mutant, verdict: Verdict) -> str:
    """One line about a mutant."""
    place = f"{mutant.file}:{mutant.line} {mutant.operator}"
    return f"{verdict.outcome:<14} {verdict.seconds:>5.1f} s {place} {verdict.by}"


def _still_wanted(waiting: Iterator[Mutant], lock: Lock, found: Sequence[Tried], count: int) -> Iterator[Mutant]:
    while True:
        with lock:
            mutant = next(waiting, None) if len(found) < count else None
        if mutant is None:
            return
        yield mutant


def report(tried: Sequence[Tried], seed: int) -> int:
    """Write the table and say what survived; the exit code is 1 where a survivor is not explained."""
    rows = [row_of(mutant, verdict, (ROOT / mutant.file).read_text()) for mutant, verdict in tried]
    explain(rows)
    command = f"python benchmarks/mutants.py --seed {seed} --count {len(rows)}"
    write_rows("mutants", rows, command=command, about={"seed": seed})
    return verdict_of(rows)


def explain_again() -> int:
    """Put the explanations of today into the table of the last draw."""
    rows = read("mutants")
    explain(rows)
    write_rows("mutants", [], command="", kept=rows)
    return verdict_of(rows)


def verdict_of(rows: Sequence[Row]) -> int:
    """Say what survived; the exit code is 1 where a survivor is not explained, but for the smoke form."""
    print(summary(rows))
    return int(not IS_SMOKE and any(row["outcome"] == "survived" and not row["explanation"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
