"""How good is the advice? Replays every policy from bad starts on real tasks and writes results/policies.csv.

Resumable: what is finished is kept under .dev/policies and used again until a policy, the replay or a reference
changes. `--ours` replays ours and what it is compared with on fresh seeds, on long runs, and with noise that is told
from small batches, and writes results/policies_ours.csv. Long tasks take hours: `--finished` writes the tables of what
is there so far, and `--task` adds the tables of one long task to those of the file, `--leave-out` without a policy: the
control B = r is most of the time of a language model. A smoke run prints a small table and writes nothing.
"""

import argparse
import csv
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch

from benchmarks.imported_code import imported
from benchmarks.results_file import RESULTS as FOLDER
from benchmarks.results_file import write_rows
from benchmarks.smoke import IS_SMOKE
from noisescale_lab.reproduce.advice.replay import replay
from noisescale_lab.reproduce.advice.replays import AT_CONSTANT_RATE, OURS, POLICIES, all_starts
from noisescale_lab.reproduce.advice.run import Outcome, Start
from noisescale_lab.reproduce.advice.scores import Score, scores
from noisescale_lab.reproduce.advice.sweep import complete, read
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, DESIGN, EVERY, HELD_OUT, LONG, PRICES

ROOT = Path(__file__).parent.parent.parent
REFERENCES = Path(__file__).with_name("references.csv")
WORK = ROOT / ".dev" / "policies"
ADVICE = ROOT / "lab/src/noisescale_lab/reproduce/advice"
DATA = (
    ROOT / "lab/src/noisescale_lab/follow/rate_lines.json",
    ROOT / "client/src/noisescale_core/advice/learning_rate/rate_coefficients.json",
)
"""What the replayed code reads beside itself."""

RESULTS, RESULTS_OF_OURS = "policies", "policies_ours"
AT_OTHER_PRICES = (
    "keep", "B = r (control)", "B = phi", "B = sqrt(r phi)", "ours", "first version", "first version without branches",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the benchmark.

    Attributes:
        split: Which tasks.
        tasks: Their names.
        seeds: Seeds of the replays.
        decays: Whether the learning rate decays.
        price_factor: Price r over B_crit.
        small_batches: Into how many a batch falls whose gradients tell the noise; None: as the task has it.
        policies: Which are replayed.
    """

    split: str
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    decays: bool = False
    price_factor: float = 1.0
    small_batches: int | None = None
    policies: tuple[str, ...] = tuple(POLICIES)


def advised(tasks: Sequence[str]) -> tuple[str, ...]:
    """Those long enough for advice."""
    return tuple(name for name in tasks if name in ADVICE_TARGETS)


PARTS = (
    Part("held-out", advised(tuple(HELD_OUT)), (520, 521, 522), policies=AT_CONSTANT_RATE),
    Part("held-out", advised(tuple(HELD_OUT)), (520, 521, 522), decays=True),
    Part("held-out", advised(tuple(HELD_OUT)), (520,), price_factor=0.25, policies=AT_OTHER_PRICES),
    Part("held-out", advised(tuple(HELD_OUT)), (520,), price_factor=4.0, policies=AT_OTHER_PRICES),
    Part("design", advised(tuple(DESIGN)), (20, 21), policies=AT_CONSTANT_RATE),
    Part("design", advised(tuple(DESIGN)), (20,), decays=True),
)
FEW = ("keep", "keep, extend", "B = r (control)", *OURS, "first version", "first version without branches")
FEW_OF_LONG = ("keep", "B = r (control)", "ours", "ours without rate changes")
FRESH, FRESH_OF_LONG = (590, 591, 592), (590,)
SWEPT = tuple(name for name in LONG if name in read(REFERENCES))
"""Long tasks with a reference; the sweep of another one takes an hour (`--sweep`)."""

OURS_AGAIN = (
    Part("held-out", advised(tuple(HELD_OUT)), FRESH, policies=tuple(name for name in FEW if name in AT_CONSTANT_RATE)),
    Part("held-out", advised(tuple(HELD_OUT)), FRESH, decays=True, policies=FEW),
    Part("held-out", advised(tuple(HELD_OUT)), FRESH[:1], small_batches=4, policies=FEW_OF_LONG),
    Part("long", SWEPT, FRESH_OF_LONG, policies=FEW_OF_LONG),
    Part("long", SWEPT, FRESH_OF_LONG, decays=True, policies=(*FEW_OF_LONG, "keep, extend")),
)


def parts_of(task: str | None, left_out: Sequence[str] = ()) -> tuple[Part, ...]:
    """The tables of ours; of one long task alone where it is named, without some policies."""
    if task is None:
        return OURS_AGAIN
    return tuple(
        replace(part, tasks=(task,), policies=tuple(policy for policy in part.policies if policy not in left_out))
        for part in OURS_AGAIN
        if part.split == "long"
    )


QUICK = Part("smoke", ("digits_softmax",), (20,), policies=("keep",))


def version(name: str) -> str:
    """Changes when anything that a task's outcomes depend on does."""
    digest = hashlib.sha256(f"{PRICES.get(name, 1.0)}".encode())
    for source in [*sorted(imported([ADVICE / "replays.py", ADVICE / "replay.py"])), *DATA]:
        digest.update(source.read_bytes())
    for row in REFERENCES.read_text().splitlines():
        if row.startswith(f"{name},"):
            digest.update(row.encode())
    return digest.hexdigest()[:12]


def file_of(part: Part, name: str) -> Path:
    """Where the outcomes on one task are kept."""
    schedule = "decay" if part.decays else "constant"
    noise = "" if part.small_batches is None else f"-{part.small_batches}"
    sizes = f"{part.price_factor:g}-{part.seeds[0]}-{len(part.seeds)}-{len(part.policies)}{noise}"
    return WORK / version(name) / f"{name}-{part.split}-{schedule}-{sizes}.json"


def outcomes_of(part: Part, name: str) -> list[Outcome]:
    """Outcomes on one task, from disk where they are there."""
    file = file_of(part, name)
    if file.exists():
        rows = json.loads(file.read_text())
        return [Outcome(**row | {"start": Start(**row["start"])}) for row in rows]
    began = time.monotonic()
    price = part.price_factor * PRICES.get(name, 1.0)
    reference = replace(complete(REFERENCES, [name])[name], price_factor=price)
    policies = {policy: POLICIES[policy] for policy in part.policies}
    task = EVERY[name]()
    if part.small_batches is not None:
        task = replace(task, small_batches=part.small_batches)
    found = replay(task, reference, all_starts(part.seeds, decays=part.decays), policies)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps([asdict(outcome) for outcome in found]))
    unfinished.rename(file)
    print(f"{file.stem}: {len(found)} runs in {time.monotonic() - began:.0f} s", flush=True)
    return found


def finished(part: Part) -> Part:
    """The part with the tasks whose outcomes are there; says which are not."""
    there = tuple(name for name in part.tasks if file_of(part, name).exists())
    missing = [name for name in part.tasks if name not in there]
    if missing:
        print(f"not replayed yet, {part.split}, {'decaying' if part.decays else 'constant'} rate: {', '.join(missing)}")
    return replace(part, tasks=there)


def noise_from(part: Part) -> str:
    """What the noise of a table's runs is told from."""
    if part.small_batches is not None:
        return f"{part.small_batches} small batches"
    counts = {EVERY[name]().small_batches for name in part.tasks}
    return " or ".join("examples" if one is None else f"{one} small batches" for one in sorted(counts, key=str)[::-1])


def show(part: Part, found: Sequence[Score]) -> None:
    """A table of median / p90 by kind of start."""
    schedule = "decaying rate" if part.decays else "constant rate"
    noise = noise_from(part)
    print(f"\n{part.split} tasks, {schedule}, r = {part.price_factor:g} B_crit, noise from {noise}; median / p90 in %")
    for policy in dict.fromkeys(score.policy for score in found):
        of_policy = {score.kind: score for score in found if score.policy == policy}
        cells = "  ".join(f"{score.median:4.0f} /{score.p90:4.0f}" for score in of_policy.values())
        everything = of_policy["all"]
        print(
            f"{policy:<40} {cells}   J {everything.relative:.2f} [{everything.low:.2f}, {everything.high:.2f}]  "
            f"added to right {of_policy['right'].added:.0f}  missed {everything.missed:.0%}"
        )


def write(
    what: str,
    tables: Sequence[tuple[Part, Sequence[Score]]],
    task: str | None = None,
    left_out: Sequence[str] = (),
) -> None:
    """All scores.

    Args:
        what: Name of the results.
        tables: The parts with theirs.
        task: The only task of these tables, which join those of others in the file; None: they are all there are.
        left_out: Policies that were not replayed.
    """
    rows = [
        {
            "split": part.split,
            "rate": "decaying" if part.decays else "constant",
            "price_over_b_crit": part.price_factor,
            "noise_from": noise_from(part),
            "tasks": " ".join(part.tasks),
            **asdict(score),
        }
        for part, found in tables
        for score in found
    ]
    command = "python benchmarks/policies/benchmark_policies.py" + (" --ours" if what == RESULTS_OF_OURS else "")
    kept: Sequence[dict[str, str]] = ()
    if task is not None:
        command += f" --task {task}" + "".join(f' --leave-out "{policy}"' for policy in left_out)
        with (FOLDER / f"{what}.csv").open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["tasks"] != task]
    write_rows(what, rows, command=command, kept=kept)


def main() -> None:
    """Replay, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", action="store_true", help="ours and what it is compared with, at one price")
    parser.add_argument(
        "--sweep", action="store_true", help="sweep long tasks first that have no reference yet, and end"
    )
    parser.add_argument("--task", choices=SWEPT, help="with --ours: this long task alone, beside what the file has")
    parser.add_argument(
        "--leave-out", choices=FEW_OF_LONG, action="append", default=[], help="with --task: not this policy"
    )
    parser.add_argument("--finished", action="store_true", help="replay nothing: tables of what is finished")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.sweep:
        complete(REFERENCES, tuple(LONG))
        return
    tables = []
    for whole in (QUICK,) if IS_SMOKE else parts_of(asked.task, asked.leave_out) if asked.ours else PARTS:
        part = finished(whole) if asked.finished else whole
        if not part.tasks:
            continue
        found = scores({name: outcomes_of(part, name) for name in part.tasks})
        show(part, found)
        tables.append((part, found))
        if asked.ours:
            write(RESULTS_OF_OURS, tables, asked.task, asked.leave_out)
        else:
            write(RESULTS, tables)


if __name__ == "__main__":
    main()
