"""What the list shows: runs a row each, trials behind their sweep, or groups; and what of it is unfolded."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

from noisescale_dashboard.answers.common import Fold, Run, RunGroup
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.runs import columns as runs_columns
from noisescale_dashboard.runs import groups as runs_groups
from noisescale_dashboard.runs import table as runs_table
from noisescale_dashboard.runs import view as runs_view

SWEEP, REPRODUCTION, GROUP, UNSAID = "s:", "r:", "g:", "n:"
"""What a row that others stand behind is called in the address begins with."""
REPRODUCE_TAG = "reproduce"
MAX_UNFOLDED = 100
"""Runs of one row; its page or a filter shows more."""
NOT_OF_GROUPS = ("sort", "limit", "cursor", "fold")


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the list.

    Attributes:
        rows: As the table takes them.
        runs: Those that are no trials: what the page speaks of.
        known: All of the page, trials too.
        total: Rows in all, without what is unfolded.
        num_runs: Runs in all.
        next_cursor: For the next page.
        is_total_exact: Whether there are no more than these in all.
    """

    rows: list[dict[str, Any]]
    runs: tuple[Run, ...]
    known: tuple[Run, ...]
    total: int
    num_runs: int
    next_cursor: str | None = None
    is_total_exact: bool = True


async def find(
    api: ApiClient, visitor: Mapping[str, str], view: Mapping[str, Any], cursor: str | None, *, narrow: bool
) -> Listing:
    """The page of a view.

    Raises:
        ApiProblem: When the API refuses the filters or does not answer.
    """
    opened = runs_columns.words_in(view["open"])[: runs_view.MAX_OPEN]
    if view["group"]:
        listing, heads = await _groups(api, visitor, view, opened)
    else:
        listing, heads = await _runs(api, visitor, view, cursor, opened)
    shown = [key for key in opened if key in heads]
    inside = await asyncio.gather(*(_unfolded(api, visitor, view, key) for key in shown))
    rows = _with_children(listing.rows, dict(zip(shown, inside, strict=True)), runs_columns.chosen(view["cols"]))
    short = runs_table.with_short_names(rows, narrow=narrow)
    known = (*listing.known, *(run for runs in inside for run in runs))
    return replace(listing, rows=short, known=known)


async def _runs(
    api: ApiClient, visitor: Mapping[str, str], view: Mapping[str, Any], cursor: str | None, opened: Sequence[str]
) -> tuple[Listing, set[str]]:
    page = await api.runs(visitor, runs_view.query(view, cursor))
    chosen = runs_columns.chosen(view["cols"])
    rows, heads = [], set()
    for run in page.runs:
        fold = page.folds.get(run.id)
        if fold is None:
            rows.append(runs_table.row(run, chosen))
            continue
        key = key_of(run, fold)
        heads.add(key)
        rows.append(runs_table.fold_row(run, fold, key, is_open=key in opened))
    runs = tuple(run for run in page.runs if run.id not in page.folds)
    listing = Listing(rows, runs, page.runs, page.total, page.num_runs, page.next_cursor, page.is_total_exact)
    return listing, heads


async def _groups(
    api: ApiClient, visitor: Mapping[str, str], view: Mapping[str, Any], opened: Sequence[str]
) -> tuple[Listing, set[str]]:
    asked = {name: value for name, value in runs_view.query(view, None).items() if name not in NOT_OF_GROUPS}
    found = await api.run_groups(visitor, {**asked, "by": view["group"]})
    groups = found.groups
    label = runs_groups.label(view["group"])
    keys = [_key_of_group(group) for group in groups]
    rows = [
        runs_table.group_row(group, label, key, is_open=key in opened) for group, key in zip(groups, keys, strict=True)
    ]
    num_runs = sum(group.num_runs for group in groups)
    return Listing(rows, (), (), len(groups), num_runs, is_total_exact=found.is_exact), set(keys)


def key_of(run: Run, fold: Fold) -> str:
    """The name of a row of trials in the address."""
    if fold.id is not None:
        return f"{SWEEP}{fold.id}"
    return f"{REPRODUCTION}{quote(run.project, safe='')}/{quote(run.task, safe='')}"


def _key_of_group(group: RunGroup) -> str:
    return UNSAID if group.value is None else f"{GROUP}{group.value}"


async def _unfolded(api: ApiClient, visitor: Mapping[str, str], view: Mapping[str, Any], key: str) -> tuple[Run, ...]:
    asked = {**runs_view.query(view, None, limit=MAX_UNFOLDED), "fold": None, **_inside(view, key)}
    try:
        return (await api.runs(visitor, asked)).runs
    except ApiProblem:
        # the row stays, and says how many there are
        return ()


def _inside(view: Mapping[str, Any], key: str) -> dict[str, Any]:
    """What narrows the list down to the runs behind a row."""
    if key.startswith(SWEEP):
        return {"sweep": key.removeprefix(SWEEP)}
    if key.startswith(REPRODUCTION):
        project, task = map(unquote, key.removeprefix(REPRODUCTION).split("/"))
        return {"project": project, "task": task, "tag": [tag for tag in (view["tag"], REPRODUCE_TAG) if tag]}
    value = "null" if key == UNSAID else json.dumps(key.removeprefix(GROUP), ensure_ascii=False)
    condition = f"{json.dumps(view['group'], ensure_ascii=False)} = {value}"
    return {"where": [*runs_columns.words_in(view["where"]), condition]}


def _with_children(
    rows: Sequence[dict[str, Any]], inside: Mapping[str, Sequence[Run]], chosen: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows, each with what stands behind it below it; a run stands in the table once."""
    found: list[dict[str, Any]] = []
    seen = {row["id"] for row in rows}
    for row in rows:
        found.append(row)
        for run in inside.get(row["id"], ()):
            if run.id not in seen:
                seen.add(run.id)
                found.append({**runs_table.row(run, chosen), "child": True})
    return found
