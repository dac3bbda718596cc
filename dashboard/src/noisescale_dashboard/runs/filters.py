"""What narrows the list of runs down, in which order it stands, and which columns it has."""

from collections.abc import Iterable, Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.runs import columns as runs_columns
from noisescale_dashboard.runs import groups as runs_groups
from noisescale_dashboard.runs import view as runs_view
from noisescale_dashboard.runs.view import NO_FILTER
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon

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
TRIALS = (("fold", "folded"), ("hide", "hidden"), ("show", "a row each"))
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
FIELDS = ("lr", "loss", "step", "batch", "noise_scale", "devices", "optimizer", "family", "device", "project", "task")
"""What a run says of itself that can be compared, besides its config."""
SHELVES = (("current", "Not archived"), ("archived", "Archived"))
BEHIND_MORE = ("tag", "since", "shelf", *runs_view.RANGES)
SORT_CHOICES = (
    ("-misfit", "furthest off"),
    ("misfit", "best fit"),
    ("-saving", "biggest savings"),
    ("saving", "smallest savings"),
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
            placeholder="Name, -not, /regex/",
            debounce=300,
            leftSection=icon("search", "sm"),
            className="search",
            size="xs",
            **aria({"aria-label": "Search runs"}),
        ),
        _choice("runs-task", "Task", [], width=108, placeholder="Task: any", searchable=True, clearable=True),
        _choice(
            "runs-decision",
            "Decision",
            [{"value": value, "label": label} for value, label in DECISION_CHOICES],
            width=122,
            placeholder="Decision: any",
            clearable=True,
        ),
        _choice(
            "runs-status", "Status", list(runs_view.STATUSES), width=110, placeholder="Status: any", clearable=True
        ),
        _choice(
            "runs-order",
            "Sort by",
            [{"value": value, "label": f"Sort: {label}"} for value, label in SORT_CHOICES],
            width=172,
            value="-misfit",
        ),
        _choice(
            "runs-trials",
            "Trials of sweeps and reproductions",
            [{"value": value, "label": f"Trials: {label}"} for value, label in TRIALS],
            width=126,
            value="fold",
        ),
        _choice(
            "runs-group",
            "Group by",
            runs_groups.choices(()),
            width=140,
            placeholder="Group: none",
            searchable=True,
            clearable=True,
        ),
        _conditions(),
        _more(),
    ]


def columns_choice() -> html.Details:
    """Which further columns the table has; in the title's row, since it narrows nothing down."""
    return html.Details(
        [
            html.Summary([icon("columns", "sm"), "Columns"], className="btn"),
            html.Div(
                [
                    html.P("Further columns: what a run says of itself, and any key of its config.", className="t2"),
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
    )


def field_choices(runs: Iterable[Run]) -> list[str]:
    """What a condition can be about: keys of these runs' configs, then what runs say of themselves."""
    keys = sorted({f"{runs_columns.CONFIG}{key}" for run in runs for key in run.config or {}})
    return [*keys[: runs_columns.MAX_KEYS], *FIELDS]


def where_words(view: Mapping[str, Any]) -> str:
    """The button's words: how many conditions are set, "Config: 2"."""
    num_set = len(runs_columns.words_in(view["where"]))
    return f"Config: {num_set}" if num_set else "Config"


def _conditions() -> html.Details:
    """Conditions on values of the config: made of a field, a comparison and a value, or typed as they are."""
    inside: dict[str, Any] = {"size": "xs", "comboboxProps": {"withinPortal": False}}
    field = dmc.Autocomplete(
        id="runs-where-field",
        data=field_choices(()),
        placeholder="config.lr",
        **inside,
        **aria({"aria-label": "Field"}),
    )
    by = dmc.Select(
        id="runs-where-by",
        data=list(COMPARISONS),
        value="=",
        allowDeselect=False,
        w=64,
        **inside,
        **aria({"aria-label": "Comparison"}),
    )
    value = dmc.TextInput(id="runs-where-value", placeholder="0.1", size="xs", **aria({"aria-label": "Value"}))
    typed = dmc.TagsInput(
        id="runs-where",
        label="All of these hold",
        description="Or type one: config.optimizer = adamw",
        value=[],
        maxTags=16,
        # a comma or a space may be part of a value
        splitChars=[],
        clearable=True,
        **inside,
    )
    add = html.Button("Add", id="runs-where-add", type="button", className="btn")
    return html.Details(
        [
            html.Summary([icon("filter", "sm"), html.Span("Config", id="runs-where-words")], className="btn"),
            html.Div([html.Div([field, by, value, add], className="row condition"), typed], className="dropdown grid"),
        ],
        className="details where-filters",
    )


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
