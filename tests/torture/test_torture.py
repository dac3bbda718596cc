"""Sixty faults lose and double nothing, and each planted bug is caught; `make torture` does three thousand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from killable_postgres import KillablePostgres, killable_postgres
from torture.campaign import MUTANTS, STORIES, tortured
from torture.faults import KINDS

pytestmark = [pytest.mark.slow, pytest.mark.processes]

ROUNDS = 3


@pytest.fixture(scope="module")
def postgres() -> Iterator[KillablePostgres]:
    """One for all worlds: each has a database of its own."""
    with killable_postgres() as running:
        yield running


def test_sixty_faults_lose_and_double_nothing(postgres: KillablePostgres, tmp_path: Path) -> None:
    outcome = tortured(tmp_path / "world", postgres, num_faults=60, longest_freeze=5.0)

    assert outcome.verdict.is_good, outcome
    assert outcome.has_drained
    assert not outcome.verdict.declared_otherwise
    assert outcome.verdict.accepted > 1000
    assert set(outcome.landed) == set(outcome.injected) == set(KINDS)


@pytest.mark.parametrize("name", STORIES)
def test_a_story_without_a_bug_ends_well(postgres: KillablePostgres, tmp_path: Path, name: str) -> None:
    verdict = STORIES[name](tmp_path / "world", postgres, "")

    assert verdict.is_good, verdict


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_caught(postgres: KillablePostgres, tmp_path: Path, name: str) -> None:
    """Faults land where they land: one round may miss the moment in which a bug shows."""
    rounds = (MUTANTS[name].story(tmp_path / f"world-{number}", postgres, name) for number in range(ROUNDS))

    assert any(MUTANTS[name].is_caught(verdict) for verdict in rounds)
