"""The cards of a sweep's figures: how they are drawn and captioned."""

from typing import Any

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import html

from noisescale_dashboard import sweep_sentences
from noisescale_dashboard.figures import (
    best_learning_rates,
    critical_batch_against_target,
    steps_against_batch_size,
    steps_against_examples,
    sweep_residuals,
)
from noisescale_dashboard.number_format import count, exactly, rate
from noisescale_dashboard.pages.parts import Child, aria, card, figure_box
from noisescale_dashboard.sweep_answers import CriticalBatch, Sweep, TargetFit

GRAPHS = ("hyperbola", "steps", "targets", "rates", "residuals")
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
        _card("targets", "Critical batch against target", "", critical_batch_against_target.HEIGHT, class_name="third"),
        _card(
            "rates",
            "Best learning rate",
            "Log · whiskers: the next rates of the grid",
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
    unit, metric = sweep.unit, sweep_sentences.metric_words(sweep.metric)
    rates = best_learning_rates.best_rates(target.points, sweep.runs)
    return {
        "hyperbola": steps_against_examples.steps_against_examples(
            found.targets, target.target, unit=unit, narrow=narrow
        ),
        "steps": steps_against_batch_size.steps_against_batch_size(
            target, unit=unit, diverged=diverged_sizes(sweep), from_slopes=from_slopes, narrow=narrow
        ),
        "targets": critical_batch_against_target.critical_batch_against_target(
            found.targets, goal=found.goal, unit=unit, metric=metric, narrow=narrow
        ),
        "rates": best_learning_rates.best_learning_rates(rates, unit=unit, narrow=narrow),
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
    some += f", labelled by {metric[:24]}"
    named = f"{metric} {exactly(target.target)}"
    unit = sweep.unit[:1].upper() + sweep.unit[1:]
    best = best_learning_rates.best_rates(target.points, sweep.runs)
    return {
        "sweep-hyperbola-card-title.children": "Steps against examples",
        "sweep-hyperbola-card-subtitle.children": (
            f"{unit} to target, log–log · points: LR tuned · {some} · +: B_crit"
        ),
        "sweep-steps-card-title.children": f"Steps against batch size, {named}",
        "sweep-steps-card-subtitle.children": "Optimizer steps to target · log–log · band: 95 % of the curve",
        "sweep-steps-card-footer.children": _marks_key(sweep, target),
        "sweep-targets-card-subtitle.children": f"{unit}, log · whiskers: 95 %",
        "sweep-rates-card-footer.children": _rates_footer(best),
        "sweep-hyperbola-sentence.children": sweep_sentences.steps_sentence(target, unit=sweep.unit),
        "sweep-steps-sentence.children": sweep_sentences.steps_sentence(target, unit=sweep.unit),
        "sweep-targets-sentence.children": sweep_sentences.targets_sentence(found),
        "sweep-rates-sentence.children": _rates_sentence(best),
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


def _rates_footer(best: tuple[best_learning_rates.BestRate, ...]) -> str | None:
    edges = [count(one.batch_size) for one in best if one.is_at_edge]
    if not edges:
        return None
    return f"○ At batch {', '.join(edges)} the best was the last one tried: a better one may lie beyond it."


def _rates_sentence(best: tuple[best_learning_rates.BestRate, ...]) -> str:
    said = [f"{rate(one.lr)} at batch {count(one.batch_size)}" for one in best]
    return f"Best learning rates: {', '.join(said)}." if said else "No learning rates."


def _residuals_sentence(target: TargetFit) -> str:
    if target.fit is None:
        return "There is no fit, so there are no residuals."
    worst = max(target.fit.residuals, key=lambda one: abs(one.log_ratio), default=None)
    if worst is None:
        return "There are no residuals."
    percents = sweep_residuals.percent(worst.log_ratio)
    return f"Largest residual {percents:.1f} % at batch {count(worst.batch_size)}; rms {100 * target.fit.rms:.1f} %."
