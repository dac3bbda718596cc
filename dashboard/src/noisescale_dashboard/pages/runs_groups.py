"""Runs in groups: how many agree in task, optimizer or a key of their config, and medians over them."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from dash import html

from noisescale_dashboard.answers import Run, RunGroup
from noisescale_dashboard.number_format import NOTHING, count, si, significant
from noisescale_dashboard.pages.parts import Child, card, link
from noisescale_dashboard.pages.runs_columns import CONFIG, MAX_KEYS, WORD_LIMIT

OWN = {"project": "Project", "task": "Task", "optimizer": "Optimizer", "family": "Family", "device": "Device"}
FILTERS = ("project", "task")
"""Groups whose value is a filter of the list, too."""
HEADS = ("Runs", "Resolved", "Noise scale", "Batch", "Loss")
NARROW_HEADS = ("Runs", "Noise scale")


def choices(runs: Iterable[Run], also: str | None = None) -> list[dict[str, str]]:
    """What runs can be grouped by."""
    keys = sorted({f"{CONFIG}{key}" for run in runs for key in run.config or {}})[:MAX_KEYS]
    names = dict.fromkeys([*OWN, *([also] if also else []), *keys])
    return [{"value": name, "label": f"Group: {label(name)[:WORD_LIMIT].lower()}"} for name in names]


def label(by: str) -> str:
    """In words."""
    return OWN.get(by) or by.removeprefix(CONFIG)


def card_of(groups: Sequence[RunGroup], by: str, *, narrow: bool) -> html.Section:
    """A row a group, largest first."""
    heads = NARROW_HEADS if narrow else HEADS
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in (label(by)[:WORD_LIMIT], *heads)]))
    rows = [_row(group, by, narrow=narrow) for group in groups]
    table = html.Table([head, html.Tbody(rows)], className="tb")
    return card(
        f"Runs by {label(by)[:WORD_LIMIT].lower() if by in OWN else label(by)[:WORD_LIMIT]}",
        "Largest first, in examples · medians of the resolved noise scales, the batches in use, the newest losses",
        html.Div(table, className="scrolly", tabIndex="0"),
        card_id="runs-groups-card",
        class_name="mb12",
        has_table=True,
    )


def _row(group: RunGroup, by: str, *, narrow: bool) -> html.Tr:
    noise = si(group.noise_scale) if group.noise_scale is not None else "not resolved"
    loss = significant(group.loss, 4) if group.loss is not None else NOTHING
    said = [count(group.num_runs), noise]
    if not narrow:
        said = [count(group.num_runs), count(group.num_resolved), noise, si(group.global_batch), loss]
    return html.Tr([html.Td(_value(group, by)), *(html.Td(word) for word in said)])


def _value(group: RunGroup, by: str) -> Child:
    if group.value is None:
        return html.Span("not said", className="dim")
    shown = group.value[:WORD_LIMIT] or "empty"
    if by in FILTERS:
        return link(shown, "/runs?" + urlencode({by: group.value}), class_name="inline")
    return shown
