"""The statements behind lists of runs go along indexes: each is explained where a sequential scan is the last resort.

A few thousand runs are some pages for Postgres, so it may rather read all of them. With `enable_seqscan` off it does so
only where no index serves. Going along an index from end to end is no better: so the runs that a page reads on its way
are counted, too.
"""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.storage import telemetry
from noisescale_server.storage.alerts import watched
from noisescale_server.storage.platform import driver
from noisescale_server.storage.platform.engine import create_engine
from noisescale_server.storage.runs import listed, listing, queries
from noisescale_server.storage.runs.filters import RunFilter
from noisescale_server.storage.runs.listing import After, Sort

NOW = datetime.now(UTC)
SMALL = {"project", "task", "sweep"}
"""Tables of which every node has all: reading them whole costs little."""
RUNS = """
INSERT INTO run (id, project_id, task_id, name, updated_at, heard_at, created_at, noise_scale_state, misfit, decision,
  decision_saving, finish_status, trial_of, window_is_stale, decision_is_stale)
SELECT gen_random_uuid(), project.id, task.id, 'run ' || md5(i::text), now() - i * interval '1 hour',
  now() - i * interval '1 hour', now() - i * interval '1 hour', 'resolved', i % 97 / 10.0, 'increase', i % 89 / 100.0,
  CASE WHEN i > 20 THEN 'finished' END, CASE WHEN i % 20 = 0 THEN project.id END, false, false
FROM generate_series(1, 4000) AS i, project JOIN task ON task.project_id = project.id
WHERE (i % 100 = 0) = (project.name = 'small')
"""
"""Of five months; twenty are live, one of twenty is a trial, one of a hundred is of the small project."""


@pytest.fixture(scope="module")
async def many_runs(new_database: Callable[[], str], postgres: EmbeddedPostgres) -> AsyncIterator[AsyncEngine]:
    """A database of thousands of runs, as its owner, who may drop an index."""
    engine = create_engine(postgres.url(str(make_url(new_database()).database)))
    async with engine.begin() as connection:
        await connection.execute(text("INSERT INTO project (name) VALUES ('large'), ('small')"))
        await connection.execute(text("INSERT INTO task (project_id, name) SELECT id, 'digits' FROM project"))
        await connection.execute(text(RUNS))
        await connection.execute(text("ANALYZE run"))
    yield engine
    await engine.dispose()


MOST_READ = 800
"""Of the four thousand runs: what a page of fifty may look at."""


@dataclass(frozen=True, slots=True)
class List:
    """A list as a page asks for it."""

    sort: str
    is_folded: bool = False
    after: Any = None
    filter: dict[str, Any] = field(default_factory=dict)


def a_list(sort: str, *, is_folded: bool = False, after: Any = None, **filters: Any) -> List:
    return List(sort, is_folded, None if after is None else After(after, uuid4()), filters)


QUARTER = NOW - timedelta(days=90)
LISTS = {
    "the page Runs": a_list("-misfit", is_folded=True, updated_after=QUARTER),
    "its next page": a_list("-misfit", is_folded=True, updated_after=QUARTER, after=5.0),
    "the page Runs, of any age": a_list("-misfit", is_folded=True),
    "smallest misfit first": a_list("misfit", without_trials=True),
    "runs to change": a_list("-saving", without_trials=True, decisions=["increase", "decrease"], updated_after=QUARTER),
    "the newest runs": a_list("-updated_at"),
    "the newest runs, next page": a_list("-updated_at", after=NOW - timedelta(days=9)),
    "the runs that were silent longest": a_list("updated_at"),
    "what the Overview judges": a_list("-misfit", without_trials=True, statuses=["running", "silent"]),
    "runs of a small project": a_list("-misfit", is_folded=True, project="small"),
    "a search": a_list("-misfit", is_folded=True, text="c4ca4238"),
    "a search by the beginning of an id": a_list("-misfit", is_folded=True, text="1b2c3d-"),
}


class Scans:
    """What statements read, as Postgres tells of having run them."""

    def __init__(self) -> None:
        self.whole: set[str] = set()
        self.num_runs = 0

    def add(self, plan: dict[str, Any]) -> None:
        name = plan.get("Relation Name")
        if plan["Node Type"] == "Seq Scan" and name not in SMALL:
            self.whole.add(name)
        if name == "run":
            read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
            self.num_runs = max(self.num_runs, read * plan["Actual Loops"])
        for inner in plan.get("Plans", ()):
            self.add(inner)


async def scans_of_list(connection: AsyncConnection, one: List, patch: pytest.MonkeyPatch) -> Scans:
    """Of every statement that a page of the list takes."""
    asked: list[tuple[str, Any]] = []

    def hear(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        # counts go on to ten thousand, and are told by a scan of the whole table alone
        if statement.lstrip().startswith("SELECT") and "FROM run" in statement and "count(" not in statement:
            asked.append((statement, parameters))

    event.listen(connection.sync_connection, "before_cursor_execute", hear)

    async def read(session: AsyncSession, statement: str, *parameters: Any) -> Any:
        asked.append((statement, parameters))
        return await driver.read(session, statement, *parameters)

    filters = {"silent_before": NOW - timedelta(minutes=1), "crashed_before": NOW - timedelta(hours=24), **one.filter}
    sort = Sort(one.sort.removeprefix("-"), is_descending=one.sort.startswith("-"))
    async with AsyncSession(bind=connection, join_transaction_mode="create_savepoint") as session:
        patch.setattr(listed, "read", read)
        await queries.list_page(session, RunFilter(**filters), sort, limit=51, after=one.after, is_folded=one.is_folded)
    event.remove(connection.sync_connection, "before_cursor_execute", hear)
    assert len(asked) >= 2, "its page and its rows"
    found = Scans()
    for statement, parameters in asked:
        found.add(await plan_of(connection, statement, parameters))
    return found


async def plan_of(connection: AsyncConnection, statement: str, parameters: Any) -> dict[str, Any]:
    await connection.execute(text("SET LOCAL enable_seqscan = off"))
    explained = (
        await connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
    ).scalar_one()
    return dict((json.loads(explained) if isinstance(explained, str) else explained)[0]["Plan"])


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_of_runs_goes_along_its_indexes(
    many_runs: AsyncEngine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in the proportion of what is tried to a million runs
    monkeypatch.setattr(listing, "MOST_TRIED", 100)
    async with many_runs.connect() as connection, connection.begin() as transaction:
        found = await scans_of_list(connection, LISTS[name], monkeypatch)
        await transaction.rollback()

    assert found.whole == set()
    assert found.num_runs <= MOST_READ


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("the page Runs, of any age", "ix_run_misfit"),
        ("runs to change", "ix_run_saving"),
        ("the newest runs", "ix_run_heard"),
        ("the newest runs, next page", "ix_run_heard"),
        ("a search", "ix_run_name_parts"),
        ("runs of a small project", "ix_run_project"),
    ],
)
async def test_a_list_whose_index_is_gone_is_told(
    many_runs: AsyncEngine, name: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_TRIED", 100)
    async with many_runs.connect() as connection, connection.begin() as transaction:
        await connection.execute(text(f"DROP INDEX {index}"))
        found = await scans_of_list(connection, LISTS[name], monkeypatch)
        await transaction.rollback()

    assert found.whole or found.num_runs > MOST_READ


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        (watched._RUNS, ([uuid4()], NOW - timedelta(days=1), NOW, NOW - timedelta(days=1))),
        (telemetry._NEWEST, (None, NOW - timedelta(minutes=1), 50, NOW - timedelta(minutes=2))),
    ],
    ids=["what alerts watch", "live runs in the metrics"],
)
async def test_what_servers_look_at_by_themselves_goes_along_indexes(
    many_runs: AsyncEngine, statement: str, parameters: tuple[Any, ...]
) -> None:
    found = Scans()
    async with many_runs.connect() as connection, connection.begin() as transaction:
        found.add(await plan_of(connection, statement, parameters))
        await transaction.rollback()

    assert found.whole == set()
