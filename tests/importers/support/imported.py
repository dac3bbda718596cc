"""`noisescale import` as a person runs it, and what the server says afterwards."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from noisescale import commands


@dataclass
class Said:
    """What one command did."""

    status: int
    text: str

    @property
    def num_new(self) -> int:
        """Records that it says are new."""
        found = re.search(r": ([\d,]+) new records", self.text)
        assert found is not None, self.text
        return int(found[1].replace(",", ""))


@dataclass
class Imports:
    """Runs the command, and asks the server."""

    rest: httpx.Client
    capsys: pytest.CaptureFixture[str]
    project: str

    def __call__(self, kind: str, *arguments: str | Path) -> Said:
        """Import into the test's project."""
        self.capsys.readouterr()
        status = commands.main(["import", kind, *map(str, arguments), "--project", self.project])
        out, err = self.capsys.readouterr()
        return Said(status, out + err)

    def runs(self) -> list[dict[str, Any]]:
        """The project's runs by name."""
        found = self.rest.get("/runs", params={"project": self.project, "limit": 200}).raise_for_status().json()
        return sorted(found["runs"], key=lambda run: str(run["name"]))

    def run(self) -> dict[str, Any]:
        """The only run."""
        [found] = self.runs()
        return found

    def metric(self, run_id: str, name: str) -> list[tuple[int, float | None]]:
        """Steps and values of a metric."""
        answer = self.rest.get(f"/runs/{run_id}/metrics", params={"name": name, "points": 1000}).raise_for_status()
        [found] = answer.json()["metrics"]
        return list(zip(found["step"], found["value"], strict=True))

    def streams(self, run_id: str) -> list[dict[str, Any]]:
        """The ledger: each stream's account."""
        found: list[dict[str, Any]] = self.rest.get(f"/runs/{run_id}/streams").raise_for_status().json()["streams"]
        return found

    def losses(self, run_id: str) -> list[tuple[int, float | None]]:
        """Steps and training losses."""
        answer = self.rest.get(f"/runs/{run_id}/noise-scale", params={"points": 1000}).raise_for_status().json()
        return list(zip(answer["points"]["step"], answer["points"]["loss"], strict=True))


def close(found: list[tuple[int, float | None]], wanted: list[tuple[int, float]]) -> bool:
    """Whether steps are equal and values, too, up to the last digits."""
    return [step for step, _ in found] == [step for step, _ in wanted] and [
        value for _, value in found
    ] == pytest.approx([value for _, value in wanted])
