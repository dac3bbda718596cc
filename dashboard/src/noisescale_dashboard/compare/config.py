"""Configurations side by side: what differs between runs, as parallel coordinates and as a table."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.compare import words as compare_sentences
from noisescale_dashboard.compare.runs import Chosen, swatch
from noisescale_dashboard.figures.comparison import configurations
from noisescale_dashboard.figures.comparison.configurations import Line, Setting, Value
from noisescale_dashboard.runs.columns import config_words
from noisescale_dashboard.shell.explained import aria
from noisescale_dashboard.shell.parts import card, decision_label, figure_box, labelled, link
from noisescale_dashboard.words.number_format import count, exactly

GRAPHS = ("config",)
MAX_SETTINGS = 200
"""Rows of the table; a configuration may hold thousands of keys."""
MOST_DIGITS = 6
"""Of a setting in the table: a rate that a schedule computes has more than anybody reads."""

SAME_AS = {
    **dict.fromkeys(("batch", "batch_size", "global_batch", "global_batch_size", "total_batch_size"), "batch"),
    **dict.fromkeys(("lr", "learning_rate", "base_lr", "max_lr", "peak_lr"), "learning rate"),
    **dict.fromkeys(("optim", "optimizer_name"), "optimizer"),
    **dict.fromkeys(("world_size", "num_devices", "gpus"), "devices"),
    "task_name": "task",
}
"""Names by which configs say what runs say already: they are left out where both say the same of all runs."""
DISPLAYED = 60


def cards(*, narrow: bool) -> list[html.Section]:
    """The cards before their first data."""
    height = configurations.NARROW_HEIGHT if narrow else configurations.HEIGHT
    return [
        card(
            "Configurations",
            "",
            figure_box("compare-config", card_id="compare-config-card", height=height),
            card_id="compare-config-card",
            footer=[],
            is_figure=True,
            class_name="config-card",
        ),
        card(
            "What differs",
            "",
            html.Div(id="compare-config-table", className="scrollx-in", tabIndex="0"),
            card_id="compare-differences-card",
            actions=dmc.Switch(id="compare-same", label="Show what is equal", checked=False, size="xs"),
            has_table=True,
            class_name="differences-card",
        ),
    ]


def changes(chosen: Chosen, *, with_equal: bool, narrow: bool) -> dict[str, Any]:
    """What the page shows of the configurations."""
    settings = settings_of(chosen.runs)
    different = [one for one in settings if one.varies]
    lines = [
        Line(name, run.decision.decision, decision_label(run), whole=run.name)
        for run, name in zip(chosen.runs, chosen.names, strict=True)
    ]
    drawn = configurations.shown(settings, narrow=narrow)
    of_all = f"{len(drawn)} of {len(different)} that differ" if len(drawn) < len(different) else "those that differ"
    head = compare_sentences.config_headline(len(different), len(settings), len(chosen.runs))
    names = ", ".join(one.name[:40] for one in different[:12]) + (" …" if len(different) > 12 else "")
    return {
        "compare-head.children": head,
        "compare-lede.children": f"{names}." if different else "Batch, learning rate, optimizer and config are equal.",
        "compare-config-figures.data": {"config": configurations.configurations(settings, lines, narrow=narrow)},
        "compare-config-card-subtitle.children": f"An axis a setting, {of_all} · a line a run, its decision by colour",
        "compare-config-card-footer.children": _key(),
        "compare-config-sentence.children": f"{head}: {names}.",
        "compare-config-box.className": "grid" if different else "grid nothing-differs",
        "compare-config-table.children": _table(chosen, settings if with_equal else different),
        "compare-differences-card-subtitle.children": _table_words(
            len(different), len(settings), with_equal=with_equal
        ),
    }


def settings_of(runs: Sequence[Run]) -> list[Setting]:
    """Batch, learning rate, optimizer and the keys of the configs, those that differ first."""
    own: tuple[tuple[str, list[Any]], ...] = (
        ("batch", [run.global_batch for run in runs]),
        ("learning rate", [run.lr for run in runs]),
        ("optimizer", [run.optimizer for run in runs]),
        ("devices", [run.num_devices for run in runs]),
        ("task", [run.task for run in runs]),
    )
    keys = sorted({key for run in runs for key in run.config or {}})[:MAX_SETTINGS]
    config = [(key, [(run.config or {}).get(key) for run in runs]) for key in keys]
    ours, theirs = (
        [Setting(name, tuple(_value(one) for one in values)) for name, values in part] for part in (own, config)
    )
    said = {one.name: one.values for one in ours}
    theirs = [one for one in theirs if said.get(SAME_AS.get(one.name.lower(), "")) != one.values]
    return sorted([*ours, *theirs], key=lambda one: not one.varies)


def _value(value: Any) -> Value:
    """A number as one, anything else as it is written in JSON."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return config_words(value)


def _key() -> list[html.Span]:
    return [
        html.Span([html.Span(className=f"sw {style}"), words])
        for style, words in (("n", "raise"), ("b", "lower"), ("r", "keep"), ("run0", "undecided"))
    ]


def _table_words(num_different: int, num_settings: int, *, with_equal: bool) -> str:
    shown = num_settings if with_equal else num_different
    return f"{shown} of {num_settings} settings"


def _table(chosen: Chosen, settings: Sequence[Setting]) -> html.Table:
    heads = [
        html.Th([swatch(slot), link(name[:DISPLAYED], f"/runs/{run.id}")], scope="col")
        for run, name, slot in zip(chosen.runs, chosen.names, chosen.slots, strict=True)
    ]
    rows = [
        html.Tr(
            [
                html.Th(setting.name[:DISPLAYED], scope="row", className="" if setting.varies else "dim"),
                *labelled(
                    [html.Td(_cell(value), className="" if setting.varies else "dim") for value in setting.values],
                    [name[:DISPLAYED] for name in chosen.names],
                ),
            ]
        )
        for setting in settings
    ]
    return html.Table(
        [html.Thead(html.Tr([html.Th("Setting", scope="col"), *heads])), html.Tbody(rows)],
        className="tb differing fold",
        **aria({"aria-label": "Settings by run"}),
    )


def _cell(value: Value) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return value
    return count(value) if value.is_integer() else exactly(float(f"{value:.{MOST_DIGITS}g}"))
