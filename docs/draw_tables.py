"""Draws docs/images/tables.svg: the tables of the database and how they hang together, from their classes.

python docs/draw_tables.py
"""

import importlib
import pkgutil
import sys
from collections import defaultdict
from html import escape
from pathlib import Path

from sqlalchemy import Table as Drawn

from noisescale_server import storage
from noisescale_server.storage.platform.tables import Table

IMAGE = Path(__file__).parent / "images" / "tables.svg"
COLUMNS = (
    {
        "project": "runs of one team",
        "person": "somebody who logs in",
        "deleted_run": "whose records are refused",
        "epoch": "which life of the data",
        "audit": "who changed access",
    },
    {
        "task": "what is trained",
        "project_default": "price, worth of a step",
        "reproduction": "what a campaign found",
        "saved_view": "a page under a name",
        "project_baseline": "what runs are compared to",
        "project_retention": "when old rows are folded",
        "public_project": "open to everybody",
        "alert_rule": "what is watched for",
        "alert_event": "what a rule has noticed",
        "alert_receiver": "where events go",
        "membership": "role in a project",
        "run_link": "shows one run, for a time",
        "api_key": "without its secret",
        "web_session": "a browser logged in",
        "login_attempt": "works once",
    },
    {
        "run": "one training",
        "sweep": "runs at several batch sizes",
        "alert_episode": "a run and a rule",
        "alert_delivery": "owed to a receiver",
    },
    {
        "stream": "one process: cursor, ledger",
        "stream_place": "found by its id alone",
        "run_author": "keys that wrote to it",
        "late_arrival": "how late records came",
        "run_comment": "what people say of it",
        "sweep_run": "stored, or a given curve",
        "calibration": "B_crit and κ of a sweep",
    },
    {
        "measurement": "sums over updates",
        "rollup": "32, 1,024 … of them added",
        "metric": "what the job logs besides",
        "group_measurement": "sums of each layer",
        "group_rollup": "32, 1,024 … of them added",
        "stream_loss": "records given up",
    },
)
"""Every table with what a row of it is, each right of what it belongs to."""
ROWS = ("measurement", "rollup", "metric", "group_measurement", "group_rollup")
"""What grows with each step; without foreign keys, as each would cost every insert a look-up."""
WIDTH, HEIGHT, GAP, PITCH, LEFT, TOP = 198, 46, 46, 56, 16, 44
FEET = 56
STYLE = """<style>
  .box { fill: #eef2f7; stroke: #64748b; rx: 6; } .keep { fill: #e3f1ec; stroke: #3f8f78; rx: 6; }
  .line { fill: none; stroke: #475569; stroke-width: 1.4; } .names { stroke-dasharray: 4 3; }
  text { fill: #1e293b; } .h { font-weight: 600; font-size: 13px; } .s { fill: #55637a; font-size: 12px; }
  @media (prefers-color-scheme: dark) {
    .box { fill: #24303f; stroke: #7c8ba1; } .keep { fill: #1f3a33; stroke: #5fb49c; }
    .line { stroke: #a3b1c6; } text { fill: #e2e8f0; } .s { fill: #a9b6c9; }
  }
</style>"""


def tables() -> dict[str, Drawn]:
    """Every table of the server by name; its classes are in all rooms of `storage`."""
    for module in pkgutil.walk_packages(storage.__path__, f"{storage.__name__}."):
        importlib.import_module(module.name)
    return dict(Table.metadata.tables)


def belongs_to(table: Drawn) -> list[str]:
    """The tables whose rows a row of it points at, and the stream of those that have no foreign keys."""
    parents = sorted({key.column.table.name for key in table.foreign_keys})
    names = {column.name for column in table.columns}
    return parents or (["stream"] if {"run_id", "stream_id"} <= names else [])


def places(known: dict[str, Drawn]) -> dict[str, tuple[int, float]]:
    """Column and upper edge of each table; a column begins at the height of what its first table belongs to.

    Raises:
        SystemExit: Where a table is not in `COLUMNS`, or one there is no table.
    """
    named = [name for column in COLUMNS for name in column]
    if wrong := set(named) ^ set(known):
        raise SystemExit(f"COLUMNS in docs/draw_tables.py and the database differ by {', '.join(sorted(wrong))}")
    found: dict[str, tuple[int, float]] = {}
    for number, column in enumerate(COLUMNS):
        lowest = float(TOP)
        for name in column:
            above = [found[parent][1] for parent in belongs_to(known[name]) if parent in found]
            top = max(lowest, min(above, default=lowest)) if number > 1 else lowest
            found[name] = (number, top)
            lowest = top + PITCH
    last = max(found[name][1] for name in COLUMNS[1])
    for step, name in enumerate(reversed(COLUMNS[0])):
        if name != "project":
            found[name] = (0, last - step * PITCH)
    return found


def drawn(known: dict[str, Drawn]) -> str:
    """The whole picture."""
    where = places(known)
    parents = {name: belongs_to(table) for name, table in known.items()}
    boxes = [box(name, known[name], *where[name]) for name in where]
    told = told_in_words(parents, where)
    height = max(top for _, top in where.values()) + HEIGHT + FEET
    width = 2 * LEFT + len(COLUMNS) * WIDTH + (len(COLUMNS) - 1) * GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" role="img" '
        'font-family="system-ui, sans-serif" font-size="14">\n'
        "<title>The tables of the database, each right of what it belongs to</title>"
    )
    legend = (
        f'<text class="s" x="{LEFT}" y="24">A line leads from a table to what its rows belong to; dashed: by name, '
        "without a foreign key. At the right of a box: its columns. Green: grows with each step.</text>"
    )
    foot = f'<text class="s" x="{LEFT}" y="{height - 20:.0f}">{escape(told)}</text>'
    return "\n".join([head, STYLE, legend, *lines(parents, where), *boxes, foot, "</svg>", ""])


def box(name: str, table: Drawn, column: int, top: float) -> str:
    """A table: its name, how many columns it has, what a row is."""
    x, kind = LEFT + column * (WIDTH + GAP), "keep" if name in ROWS else "box"
    return (
        f'<rect class="{kind}" x="{x}" y="{top:.0f}" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<text class="h" x="{x + 10}" y="{top + 19:.0f}">{name}</text>'
        f'<text class="s" x="{x + WIDTH - 10}" y="{top + 19:.0f}" text-anchor="end">{len(table.columns)}</text>'
        f'<text class="s" x="{x + 10}" y="{top + 37:.0f}">{escape(COLUMNS[column][name])}</text>'
    )


def lines(parents: dict[str, list[str]], where: dict[str, tuple[int, float]]) -> list[str]:
    """From each table to those of the column left of it, along a rail of the parent's own between the columns."""
    rails: dict[int, list[str]] = defaultdict(list)
    found = []
    for name in where:
        for parent in parents[name]:
            column, top = where[parent]
            if column != where[name][0] - 1:
                continue
            if parent not in rails[column]:
                rails[column].append(parent)
            right = LEFT + column * (WIDTH + GAP) + WIDTH
            rail = right + 12 + 9 * rails[column].index(parent)
            start, end = top + HEIGHT / 2, where[name][1] + HEIGHT / 2
            kind = "line names" if name in (*ROWS, "stream_loss") else "line"
            found.append(f'<path class="{kind}" d="M{right} {start:.0f}H{rail}V{end:.0f}H{right + GAP}"/>')
    return found


def told_in_words(parents: dict[str, list[str]], where: dict[str, tuple[int, float]]) -> str:
    """What no line shows, as it leads past a column: "run and sweep belong to project, too."."""
    past: dict[str, list[str]] = defaultdict(list)
    for name in where:
        for parent in parents[name]:
            if where[parent][0] != where[name][0] - 1:
                past[parent].append(name)
    return " ".join(f"{' and '.join(names)} belong to {parent}, too." for parent, names in past.items())


if __name__ == "__main__":
    IMAGE.write_text(drawn(tables()), encoding="utf-8")
    sys.stdout.write(f"{IMAGE.name} shows {len(tables())} tables\n")
