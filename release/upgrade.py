"""Data of an older commit, made by that commit's own code, under the new release: every row is still there."""

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from archives import ROOT, wheels_of
from installed import LOGS_A_RUN, NOISE_SCALE, Environment

Rows = Mapping[str, Sequence[str]]
OWN = ("alembic_version",)
"""Tables that say which schema there is: an upgrade changes them."""


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A work tree of a commit, gone after the block."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "checkout"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(place), commit], cwd=ROOT, check=True)
        try:
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=ROOT, check=True)


def fill(environment: Environment, commit: str) -> tuple[Rows, list[str]]:
    """Rows that the commit's own server and client have written, and the ids of their runs.

    Args:
        environment: Gets the commit's wheels.
        commit: To begin with.
    """
    with checkout(commit) as source, tempfile.TemporaryDirectory() as folder:
        environment.install(wheels_of(source, Path(folder)), is_older=True)
    with environment.up() as http:
        runs = [environment.run("python", "-c", LOGS_A_RUN).split()[-1] for _ in range(3)]
        sweep = {"project": "release", "task": "norms", "targets": [1.0], "name": "three batches"}
        sweep_id = http.post("/api/v1/sweeps", json=sweep).raise_for_status().json()["id"]
        curves = [
            {"batch_size": size, "lr": 0.1, "seed": 0, "steps": [1, 10, 100 + 6400 // size], "values": [2.0, 1.5, 0.9]}
            for size in (16, 64, 256)
        ]
        http.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": curves}).raise_for_status()
    return environment.rows(), runs


def lost(before: Rows, after: Rows) -> list[str]:
    """What is no longer there, by table: columns that the new schema has not are left out, new ones are ignored.

    Args:
        before: As the older release had written it.
        after: In the new schema.
    """
    found = []
    for table, rows in before.items():
        if table in OWN or not rows:
            continue
        if table not in after:
            found.append(f"{table}: the table with {len(rows)} rows")
            continue
        kept = [json.loads(row) for row in after[table]]
        columns = set(json.loads(rows[0])) & set(kept[0] if kept else {})
        missing = Counter(_part(json.loads(row), columns) for row in rows)
        missing -= Counter(_part(row, columns) for row in kept)
        if missing or not kept:
            found.append(f"{table}: {missing.total()} of {len(rows)} rows, such as {next(iter(missing), '')}")
    return found


def _part(row: Mapping[str, object], columns: set[str]) -> str:
    return json.dumps({name: row[name] for name in sorted(columns)}, sort_keys=True)


def read_back(environment: Environment, runs: Sequence[str]) -> None:
    """Ask the new server for what the older one had: each run with its noise scale, and the sweep with its curves."""
    with environment.up() as http:
        for run_id in runs:
            stored = http.get(f"/api/v1/runs/{run_id}").raise_for_status().json()
            assert abs(stored["noise_scale"]["value"] - NOISE_SCALE) < 1, stored
            http.get(f"/api/v1/runs/{run_id}/recommendation").raise_for_status()
        [sweep] = http.get("/api/v1/sweeps", params={"project": "release"}).raise_for_status().json()["sweeps"]
        assert sweep["num_runs"] == 3, sweep
