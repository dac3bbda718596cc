"""What narrows the list of runs down, in which order it stands, and which columns it has."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.pages import runs_columns, runs_groups, runs_view
from noisescale_dashboard.pages.parts import Child, aria, icon
from noisescale_dashboard.pages.runs_view import NO_FILTER

SINCE_WORDS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days"}
DECISION_CHOICES = (
    ("increase", "Raise"),
    ("decrease", "Lower"),
    ("probably_increase", "Probably raise"),
    ("probably_decrease", "Probably lower"),
    ("keep", "Keep"),
    ("keep_for_now", "Keep for now"),
    ("insufficient_evidence", "Undecided"),
)
RANGE_WORDS = (
    ("batch_min", "Batch, at least"),
    ("batch_max", "Batch, at most"),
    ("noise_min", "Noise scale, at least"),
    ("noise_max", "Noise scale, at most"),
)
SHELVES = (("current", "Not archived"), ("archived", "Archived"))
BEHIND_MORE = ("tag", "since", "shelf", *runs_view.RANGES)
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
        _choice("runs-project", "Project", [], width=124, placeholder="Project: any", searchable=True, clearable=True),
        _choice("runs-task", "Task", [], width=108, placeholder="Task: any", searchable=True, clearable=True),
        _choice(
            "runs-decision",
            "Decision",
            [{"value": value, "label": label} for value, label in DECISION_CHOICES],
            width=128,
            placeholder="Decision: any",
            clearable=True,
        ),
        _choice(
            "runs-status", "Status", list(runs_view.STATUSES), width=116, placeholder="Status: any", clearable=True
        ),
        _choice(
            "runs-order",
            "Sort by",
            [{"value": value, "label": f"Sort: {label}"} for value, label in SORT_CHOICES],
            width=180,
            value="-misfit",
        ),
        _choice(
            "runs-group",
            "Group by",
            runs_groups.choices(()),
            width=124,
            placeholder="Group: none",
            searchable=True,
            clearable=True,
        ),
        _more(),
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


def _more() -> html.Details:
    """What narrows the list down less often; the button counts what is set."""
    since = [{"value": name, "label": f"Last {SINCE_WORDS[name]}"} for name in SINCE_WORDS]
    shelves = [{"value": value, "label": label} for value, label in SHELVES]
    return html.Details(
        [
            html.Summary(
                [icon("filter", "sm"), html.Span(more_words(NO_FILTER), id="runs-more-words")], className="btn"
            ),
            html.Div(
                [
                    _inside("runs-since", "Last data", [*since, {"value": "any", "label": "Any time"}], "90d"),
                    _inside("runs-shelf", "Archive", shelves, "current"),
                    dmc.TextInput(id="runs-tag", label="Tag", placeholder="any", debounce=300, size="xs"),
                    html.P(
                        "In examples; runs whose noise scale has no value are left out by its limits.", className="t2"
                    ),
                    *(_limit(name, words) for name, words in RANGE_WORDS),
                ],
                className="dropdown grid",
            ),
        ],
        className="details more-filters",
    )


def more_words(view: Mapping[str, Any]) -> str:
    """The button's words: how many of the filters behind it narrow the list down, "More: 2"."""
    num_set = sum(view[name] != NO_FILTER[name] for name in BEHIND_MORE)
    return f"More: {num_set}" if num_set else "More"


def _inside(choice_id: str, words: str, data: list[Any], value: str) -> dmc.Select:
    # a list outside would close the filters, as every click beside them does
    return dmc.Select(
        id=choice_id,
        label=words,
        data=data,
        value=value,
        size="xs",
        allowDeselect=False,
        comboboxProps={"withinPortal": False},
    )


def _limit(name: str, words: str) -> dmc.NumberInput:
    return dmc.NumberInput(id=f"runs-{name}", label=words, min=0, value="", debounce=300, size="xs", hideControls=True)


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
