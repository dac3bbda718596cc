"""How good is the advice? Replays every policy from bad starts on real tasks and writes results/policies.csv.

Resumable: what is finished is kept under .dev/policies and used again until a policy, the replay or a reference
changes. `--quick` prints a small table in a minute and writes nothing.
"""

import argparse
import csv
import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from noisescale.reproduce.advice.ours import OURS
from noisescale.reproduce.advice.references import complete
from noisescale.reproduce.advice.replay import replay
from noisescale.reproduce.advice.run import Outcome, Start
from noisescale.reproduce.advice.scores import Score, scores
from noisescale.reproduce.advice.simple_policies import SIMPLE
from noisescale.reproduce.registry import ADVICE_TARGETS, ALL, DESIGN, HELD_OUT

ROOT = Path(__file__).parent.parent.parent
REFERENCES = Path(__file__).with_name("references.csv")
WORK = ROOT / ".dev" / "policies"
RESULTS = ROOT / "benchmarks" / "results" / "policies.csv"
POLICIES = SIMPLE | OURS
AT_CONSTANT_RATE = tuple(name for name in POLICIES if name != "Seesaw")  # it follows a decaying schedule only
AT_OTHER_PRICES = ("keep", "B = r (control)", "B = phi", "B = sqrt(r phi)", "ours", "ours without branches")


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the benchmark.

    Attributes:
        split: Which tasks.
        tasks: Their names.
        seeds: Seeds of the replays.
        decays: Whether the learning rate decays.
        price_factor: Price r over B_crit.
        policies: Which are replayed.
    """

    split: str
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    decays: bool = False
    price_factor: float = 1.0
    policies: tuple[str, ...] = tuple(POLICIES)


def advised(tasks: Sequence[str]) -> tuple[str, ...]:
    """Those long enough for advice."""
    return tuple(name for name in tasks if name in ADVICE_TARGETS)


PARTS = (
    Part("held-out", advised(tuple(HELD_OUT)), (100, 101), policies=AT_CONSTANT_RATE),
    Part("held-out", advised(tuple(HELD_OUT)), (100, 101), decays=True),
    Part("held-out", advised(tuple(HELD_OUT)), (100,), price_factor=0.25, policies=AT_OTHER_PRICES),
    Part("held-out", advised(tuple(HELD_OUT)), (100,), price_factor=4.0, policies=AT_OTHER_PRICES),
    Part("design", advised(tuple(DESIGN)), (20, 21), policies=AT_CONSTANT_RATE),
    Part("design", advised(tuple(DESIGN)), (20,), decays=True),
)
QUICK = Part(
    "quick", ("digits_softmax", "digits_ae_adam", "img_nextpixel"), (20,), policies=("keep", "B = phi", "ours")
)


def starts(part: Part) -> list[Start]:
    """Batch off by 8 either way or right, rate by 4 below to 2 above."""
    return [
        Start(batch, rate, seed, part.decays)
        for seed in part.seeds
        for batch in (1 / 8, 1, 8)
        for rate in (1 / 4, 1 / 2, 1, 2)
    ]


def version() -> str:
    """Changes when anything that the outcomes depend on does."""
    digest = hashlib.sha256()
    package = ROOT / "client/src/noisescale"
    advice = (package / "reproduce/advice").glob("*.py")
    sources = sorted(file for file in advice if file.name not in ("scores.py", "references.py"))
    theory = package / "theory"
    for source in [*sources, REFERENCES, theory / "policy.py", theory / "learning_rate.py"]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def outcomes_of(part: Part, name: str) -> list[Outcome]:
    """Outcomes on one task, from disk where they are there."""
    key = f"{name}-{part.split}-{'decay' if part.decays else 'constant'}-{part.price_factor:g}-{len(part.seeds)}.json"
    file = WORK / version() / key
    if file.exists():
        rows = json.loads(file.read_text())
        return [Outcome(**row | {"start": Start(**row["start"])}) for row in rows]
    began = time.monotonic()
    reference = replace(complete(REFERENCES, [name])[name], price_factor=part.price_factor)
    policies = {policy: POLICIES[policy] for policy in part.policies}
    found = replay(ALL[name](), reference, starts(part), policies)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps([asdict(outcome) for outcome in found]))
    unfinished.rename(file)
    print(f"{key}: {len(found)} runs in {time.monotonic() - began:.0f} s", flush=True)
    return found


def show(part: Part, found: Sequence[Score]) -> None:
    """A table of median / p90 by kind of start."""
    schedule = "decaying rate" if part.decays else "constant rate"
    print(f"\n{part.split} tasks, {schedule}, r = {part.price_factor:g} B_crit; regret in %, median / p90")
    for policy in dict.fromkeys(score.policy for score in found):
        of_policy = {score.kind: score for score in found if score.policy == policy}
        cells = "  ".join(f"{score.median:4.0f} /{score.p90:4.0f}" for score in of_policy.values())
        everything = of_policy["all"]
        print(
            f"{policy:<40} {cells}   J {everything.relative:.2f} [{everything.low:.2f}, {everything.high:.2f}]  "
            f"added to right {of_policy['right'].added:.0f}  missed {everything.missed:.0%}"
        )


def write(tables: Sequence[tuple[Part, Sequence[Score]]]) -> None:
    """All scores with commit, machine, date and command."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    origin = [commit.strip(), machine, stamp, "python benchmarks/policies/benchmark_policies.py"]
    with RESULTS.open("w", newline="") as file:
        rows = csv.writer(file)
        columns = list(Score.__dataclass_fields__)
        rows.writerow(["split", "rate", "price_over_b_crit", *columns, "commit", "machine", "date", "command"])
        for part, found in tables:
            for score in found:
                values = [value if isinstance(value, str) else f"{value:.4g}" for value in asdict(score).values()]
                schedule = "decaying" if part.decays else "constant"
                rows.writerow([part.split, schedule, f"{part.price_factor:g}", *values, *origin])


def main() -> None:
    """Replay, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three tasks, one seed, three policies; writes nothing")
    is_quick = parser.parse_args().quick
    torch.set_num_threads(1)
    tables = []
    for part in (QUICK,) if is_quick else PARTS:
        found = scores({name: outcomes_of(part, name) for name in part.tasks})
        show(part, found)
        tables.append((part, found))
    if not is_quick:
        write(tables)


if __name__ == "__main__":
    main()
