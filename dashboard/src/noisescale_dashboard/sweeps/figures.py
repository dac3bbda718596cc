"""The cards of a sweep's figures: how they are drawn and captioned."""

from typing import Any

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import html

from noisescale_dashboard.answers.sweeps import CriticalBatch, Sweep, TargetFit
from noisescale_dashboard.figures.sweeps import (
    best_learning_rates,
    critical_batch_against_target,
    steps_against_batch_size,
    steps_against_examples,
    sweep_residuals,
)
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, figure_box
from noisescale_dashboard.sweeps import words as sweep_sentences
from noisescale_dashboard.words.number_format import count, exactly

GRAPHS = ("hyperbola", "steps", "residuals")
REGIMES = (("fit", "By B_crit"), ("slopes", "By slopes"))


def cards(*, narrow: bool) -> list[html.Section]:
    """The cards before their first data."""
    height = steps_against_examples.NARROW_HEIGHT if narrow else steps_against_examples.HEIGHT
    regimes = dmc.SegmentedControl(
        id="sweep-regimes",
        data=[{"value": value, "label": label} for value, label in REGIMES],
        value="fit",
        size="xs",
        **aria({"aria-label": "Where regimes end"}),
    )
    return [
        _card("hyperbola", "Steps against examples", "", height, class_name="half"),
        _card("steps", "Steps against batch size", "", height, class_name="half", actions=regimes, footer=[]),
        _card(
            "targets",
            "Critical batch against target",
            "",
            critical_batch_against_target.HEIGHT,
            class_name="third",
            footer=[],
        ),
        _card(
            "rates",
            "Best learning rate",
            "Log · whiskers: half way to the next rates tried",
            best_learning_rates.HEIGHT,
            class_name="third",
            footer=[],
        ),
        _card(
            "residuals",
            "Residuals",
            "Steps over the fit · band: 2 s.d. of the scatter",
            sweep_residuals.HEIGHT,
            class_name="third",
        ),
    ]


def _card(
    name: str,
    title: str,
    subtitle: str,
    height: int,
    *,
    class_name: str,
    actions: Child | None = None,
    footer: list[Child] | None = None,
) -> html.Section:
    card_id = f"sweep-{name}-card"
    return card(
        title,
        subtitle,
        figure_box(f"sweep-{name}", card_id=card_id, height=height),
        card_id=card_id,
        actions=actions,
        footer=footer,
        class_name=f"{class_name} {name}-card",
        is_figure=True,
    )


def draw(
    sweep: Sweep, found: CriticalBatch, target: TargetFit, *, from_slopes: bool, narrow: bool
) -> dict[str, go.Figure]:
    """The figures of a sweep, `target` being the chosen one."""
    unit = sweep.unit
    return {
        "hyperbola": steps_against_examples.steps_against_examples(
            found.targets, target.target, unit=unit, narrow=narrow
        ),
        "steps": steps_against_batch_size.steps_against_batch_size(
            target, unit=unit, diverged=diverged_sizes(sweep), from_slopes=from_slopes, narrow=narrow
        ),
        "residuals": sweep_residuals.sweep_residuals(target, unit=unit, narrow=narrow),
    }


def diverged_sizes(sweep: Sweep) -> list[float]:
    """Batch sizes at which every run diverged."""
    sizes = {run.batch_size for run in sweep.runs}
    alive = {run.batch_size for run in sweep.runs if run.status != "infeasible"}
    return sorted(sizes - alive)


def captions(sweep: Sweep, found: CriticalBatch, target: TargetFit, *, metric: str) -> dict[str, Any]:
    """Titles, subtitles, footers and sentences of the figures."""
    num_drawn = len(steps_against_examples.drawn_targets(found.targets, target.target))
    some = f"{num_drawn} of {len(found.targets)} targets" if num_drawn < len(found.targets) else "lines: fit"
    some += f", by {metric[:24]}"
    named = f"{metric} {exactly(target.target)}"
    unit = sweep.unit[:1].upper() + sweep.unit[1:]
    return {
        "sweep-hyperbola-card-title.children": "Steps against examples",
        "sweep-hyperbola-card-subtitle.children": (f"{unit} to target, log–log · {some} · +: B_crit"),
        "sweep-steps-card-title.children": f"Steps against batch size, {named}",
        "sweep-steps-card-subtitle.children": "Optimizer steps to target · log–log · band: 95 % of the curve",
        "sweep-steps-card-footer.children": _marks_key(sweep, target),
        "sweep-targets-card-subtitle.children": f"{unit}, log · whiskers: 95 %",
        "sweep-hyperbola-sentence.children": sweep_sentences.steps_sentence(target, unit=sweep.unit),
        "sweep-steps-sentence.children": sweep_sentences.steps_sentence(target, unit=sweep.unit),
        "sweep-targets-sentence.children": sweep_sentences.targets_sentence(found),
        "sweep-residuals-sentence.children": _residuals_sentence(target),
    }


def _marks_key(sweep: Sweep, target: TargetFit) -> str | None:
    """What the rarer marks mean, where they are drawn."""
    said = []
    if any(point.is_at_grid_edge for point in target.points):
        said.append("○ the best learning rate was the last one tried")
    if any(point.steps is None for point in target.points):
        said.append("▲ target not reached: it takes more steps than this")
    if diverged_sizes(sweep):
        said.append("× diverged at every learning rate")
    return " · ".join(said) or None


def _residuals_sentence(target: TargetFit) -> str:
    if target.fit is None:
        return "There is no fit, so there are no residuals."
    worst = max(target.fit.residuals, key=lambda one: abs(one.log_ratio), default=None)
    if worst is None:
        return "There are no residuals."
    percents = sweep_residuals.percent(worst.log_ratio)
    return f"Largest residual {percents:.1f} % at batch {count(worst.batch_size)}; rms {100 * target.fit.rms:.1f} %."
