"""`make torture`: faults by the hundred against real clients, two servers and a Postgres, and each planted bug once.

Faults come in rounds, each with a fresh database: the records of a round are compared one by one with what the jobs
knew to be accepted. Without one loss in n faults, a loss per fault is rarer than 3 ÷ n, at 95 %.
"""

import argparse
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from results_file import Figure, write
from smoke import size

sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # before this file, which has the name of a part

from killable_postgres import KillablePostgres, killable_postgres
from torture.campaign import MUTANTS, STORIES, Outcome, tortured
from torture.faults import FREEZE_SECONDS, KINDS

FAULTS = 3000
FAULTS_OF_A_ROUND = 100
AT_ONCE = 2
"""Series of rounds, each with a Postgres of its own: they wait for clocks most of the time."""


def rounds(folder: Path, num_faults: int) -> list[Outcome]:
    """The outcome of each round, in two series side by side."""
    sizes = [min(FAULTS_OF_A_ROUND, num_faults - start) for start in range(0, num_faults, FAULTS_OF_A_ROUND)]
    numbered = list(enumerate(sizes))
    with ProcessPoolExecutor(AT_ONCE) as pool:
        series = [pool.submit(_series, folder, numbered[place::AT_ONCE]) for place in range(AT_ONCE)]
        return [outcome for one in series for outcome in one.result()]


def _series(folder: Path, numbered: Sequence[tuple[int, int]]) -> list[Outcome]:
    """Rounds one after the other, each of a seed and so many faults; what comes of one is said at once."""
    found = []
    with killable_postgres() as postgres:
        for seed, num_faults in numbered:
            outcome = tortured(
                folder / f"{seed}", postgres, num_faults=num_faults, longest_freeze=FREEZE_SECONDS[1], seed=seed
            )
            print(f"round {seed}: {outcome.verdict}, drained in {outcome.drain_seconds:.1f} s", flush=True)
            found.append(outcome)
    return found


EXPLAINED = (
    ("declared lost", "declared", ""),
    ("declared lost for another reason than a full disk", "declared_otherwise", "0"),
    ("cut off the files of dead jobs, whose streams have no end", "cut", ""),
)


def figures_of(outcomes: Sequence[Outcome]) -> list[Figure]:
    """Faults by kind, and what became of the records."""
    injected = sum((one.injected for one in outcomes), Counter[str]())
    landed = sum((one.landed for one in outcomes), Counter[str]())
    num_faults = injected.total()
    verdicts = [one.verdict for one in outcomes]
    found = [Figure("faults", num_faults, "")]
    for kind in KINDS:
        found.append(Figure(f"{kind}: injected", injected[kind], ""))
        found.append(Figure(f"{kind}: while unacknowledged records existed", landed[kind], "", "at least 50 in 1,000"))
    for name in ("accepted", "stored"):
        found.append(Figure(f"records {name}", sum(getattr(one, name) for one in verdicts), "records"))
    for name in ("lost", "doubled", "wrong", "forgotten"):
        found.append(Figure(f"records {name}", sum(getattr(one, name) for one in verdicts), "records", "0"))
    for text, name, target in EXPLAINED:
        found.append(Figure(f"records {text}", sum(getattr(one, name) for one in verdicts), "records", target))
    found.append(Figure("records sent again and dropped", sum(one.redelivered for one in verdicts), "records"))
    found.append(Figure("streams with a wrong ledger", sum(one.wrong_ledgers for one in verdicts), "streams", "0"))
    found.append(Figure("streams in conflict", sum(one.conflicts for one in verdicts), "streams", "0"))
    found.append(Figure("longest drain after a round", max(one.drain_seconds for one in outcomes), "s"))
    found.append(Figure("rounds in which everything has arrived", sum(one.has_drained for one in outcomes), ""))
    found.append(Figure("losses per fault, upper end at 95 %", 3 / num_faults, ""))
    return found


def planted(postgres: KillablePostgres, folder: Path) -> list[Figure]:
    """Which planted bugs were caught, and whether the stories end well without them."""
    for name, story in itertools.islice(STORIES.items(), size(None, 0)):
        verdict = story(folder / name.replace(" ", "_"), postgres, "")
        print(f"{name}: {verdict}", flush=True)
        if not verdict.is_good:
            raise SystemExit(f"{name} does not end well without a planted bug: {verdict}")
    caught = []
    for name, mutant in itertools.islice(MUTANTS.items(), size(None, 0)):
        verdict = mutant.story(folder / name, postgres, name)
        is_caught = mutant.is_caught(verdict)
        print(f"planted {name}: {'caught' if is_caught else 'NOT CAUGHT'}, {verdict}", flush=True)
        caught.append(Figure(f"planted {name}: records {mutant.shows}", getattr(verdict, mutant.shows), "", "above 0"))
    return [*caught, Figure("planted bugs caught", sum(one.value > 0 for one in caught), "", f"{len(MUTANTS)}")]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=size(FAULTS, 4))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outcomes = rounds(Path(folder), arguments.faults)
        with killable_postgres() as postgres:
            figures = [*figures_of(outcomes), *planted(postgres, Path(folder))]
    is_whole = arguments.faults == FAULTS
    called = "make torture" if is_whole else f"python benchmarks/torture.py --faults {arguments.faults}"
    write("torture", figures, command=called)
    is_good = all(one.verdict.is_good and one.has_drained and not one.verdict.declared_otherwise for one in outcomes)
    if not is_good or figures[-1].value < size(len(MUTANTS), 0):
        raise SystemExit("lost, doubled, or a planted bug was missed: see above")


if __name__ == "__main__":
    main()
