"""What narrows the list of runs down, in which order it stands, and which columns it has."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.pages import runs_columns, runs_groups
from noisescale_dashboard.pages.parts import Child, aria, icon

STATUSES = ("running", "finished", "failed", "silent", "crashed")
SINCE: Final[Mapping[str, timedelta | None]] = MappingProxyType(
    {
        "24h": timedelta(hours=24),
        "7d": timedelta(days=7),
        "30d": timedelta(days=30),
        "90d": timedelta(days=90),
        "any": None,
    }
)
"""How long ago a run sent its last data, at most."""
SINCE_WORDS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days"}
SHELVES = (("current", "Not archived"), ("archived", "Archived"))
SORT_CHOICES = (
    ("-misfit", "biggest savings"),
    ("misfit", "best fit"),
    ("-updated_at", "newest data"),
    ("-created_at", "newest run"),
    ("-last_step", "most steps"),
    ("last_step", "fewest steps"),
    ("-noise_scale", "largest noise scale"),
    ("noise_scale", "smallest noise scale"),
    ("-global_batch", "largest batch"),
    ("global_batch", "smallest batch"),
    ("example_efficiency", "least efficient"),
    ("-example_efficiency", "most efficient"),
    ("loss", "lowest loss"),
    ("-loss", "highest loss"),
    ("name", "name, A to Z"),
    ("-name", "name, Z to A"),
)


def layout() -> list[Child]:
    """The row of controls above the table."""
    since = [{"value": name, "label": f"Last {SINCE_WORDS[name]}"} for name in SINCE_WORDS]
    return [
        # search debounced: a request a letter would be wasted
        dmc.TextInput(
            id="runs-q",
            placeholder="Part of a name",
            debounce=300,
            leftSection=icon("search", "sm"),
            className="search",
            size="xs",
            **aria({"aria-label": "Search runs"}),
        ),
        _choice("runs-project", "Project", [], width=140, placeholder="Project: any", searchable=True, clearable=True),
        _choice("runs-task", "Task", [], width=124, placeholder="Task: any", searchable=True, clearable=True),
        _choice("runs-status", "Status", list(STATUSES), width=126, placeholder="Status: any", clearable=True),
        dmc.TextInput(
            id="runs-tag",
            placeholder="Tag: any",
            debounce=300,
            size="xs",
            w=104,
            **aria({"aria-label": "Tag"}),
        ),
        _choice("runs-since", "Last data", [*since, {"value": "any", "label": "Any time"}], width=124, value="90d"),
        _choice(
            "runs-shelf",
            "Archive",
            [{"value": value, "label": label} for value, label in SHELVES],
            width=122,
            value="current",
        ),
        _choice(
            "runs-order",
            "Sort by",
            [{"value": value, "label": f"Sort: {label}"} for value, label in SORT_CHOICES],
            width=196,
            value="-misfit",
        ),
        _choice(
            "runs-group",
            "Group by",
            runs_groups.choices(()),
            width=150,
            placeholder="Group: none",
            searchable=True,
            clearable=True,
        ),
        html.Details(
            [
                html.Summary([icon("columns", "sm"), "Columns"], className="btn"),
                html.Div(
                    [
                        html.P(
                            "Further columns: what a run says of itself, and any key of its config.", className="t2"
                        ),
                        dmc.MultiSelect(
                            id="runs-cols",
                            data=runs_columns.choices(()),
                            value=[],
                            searchable=True,
                            clearable=True,
                            maxValues=runs_columns.MAX_CHOSEN,
                            size="xs",
                            placeholder="Add a column",
                            comboboxProps={"withinPortal": False},
                            **aria({"aria-label": "Further columns"}),
                        ),
                    ],
                    className="dropdown",
                ),
            ],
            className="details columns-choice",
        ),
    ]


def _choice(choice_id: str, words: str, data: list[Any], *, width: int, **more: Any) -> dmc.Select:
    has_default = "value" in more
    return dmc.Select(
        id=choice_id,
        data=data,
        size="xs",
        w=width,
        allowDeselect=not has_default,
        **more,
        **aria({"aria-label": words}),
    )
