"""The view of a branch: is another batch size or learning rate as good, from where the run stood."""

from typing import Any

from dash import html

from noisescale_dashboard.answers.branches import Arm, Branch, branch
from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.sweeps import Sweep
from noisescale_dashboard.figures.sweeps import branch_arms
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, fact, figure_box, labelled, link
from noisescale_dashboard.words.number_format import NOTHING, count, duration, money, rate, share, si, significant, span

ARM_COLUMNS = ("Batch", "Learning rate", "Steps", "Held-out loss", "Against present", "Limits", "Verdict", "Time")


SUBTITLE = "Held-out loss, paired by batch · whiskers: one-sided 95 % limits · ■ present"


def figure_card() -> html.Section:
    """The card of the figure, which stays when the rest is replaced."""
    return card(
        "Arms against the present setting",
        SUBTITLE,
        figure_box("sweep-arms", card_id="sweep-arms-card", height=150),
        card_id="sweep-arms-card",
        is_figure=True,
    )


def figure_subtitle(found: Branch) -> str:
    """What is drawn, and how many arms lie beyond the axis.

    Args:
        found: With its arms.
    """
    num_far = branch_arms.num_far(found)
    beyond = f"{num_far} arm{'' if num_far == 1 else 's'} beyond the axis"
    return f"{SUBTITLE} · ▸ {beyond}" if num_far else SUBTITLE


def changes(sweep: Sweep, *, narrow: bool) -> dict[str, Any]:
    """What a branch sets on the page of a sweep."""
    found = branch(sweep.details)
    return {
        "sweep-head.children": _headline(found),
        "sweep-lede.children": [found.meaning or "This branch was stored without its result.", " ", *_run_link(sweep)],
        "sweep-branch.children": [_facts(found, sweep), _table_card(found)],
        "sweep-branch-figures.data": {"arms": branch_arms.branch_arms(found, narrow=narrow)} if found.arms else None,
        "sweep-arms-card-subtitle.children": figure_subtitle(found),
        "sweep-arms.style": {"width": "100%", "height": branch_arms.height(len(found.arms))},
    }


def _run_link(sweep: Sweep) -> list[Child]:
    return [link("Open the run it left", f"/runs/{sweep.run_id}", class_name="inline")] if sweep.run_id else []


def _headline(found: Branch) -> str:
    low, high = found.local_critical_batch.low, found.local_critical_batch.high
    if low is not None and high is not None:
        return f"Local critical batch between {count(low)} and {count(high)}"
    if low is not None:
        return f"Batch {count(low)} is as good here; larger ones were not shown to lose"
    if high is not None:
        return f"Local critical batch below {count(high)}"
    worse = sum(arm.verdict == "worse" for arm in found.arms)
    as_good = sum(arm.verdict == "as_good" for arm in found.arms)
    return f"{count(as_good)} of {count(max(len(found.arms) - 1, 0))} arms as good, {count(worse)} worse"


def _facts(found: Branch, sweep: Sweep) -> html.Div:
    cost = found.cost
    usd = money(cost.usd) if cost.usd is not None else "no price known"
    unit = sweep.unit[:20]
    return html.Div(
        [
            fact("Noise scale there", _known(found.noise_scale), unit, _noise_context(found), swatch="n"),
            fact("κ there", _known(found.kappa), "", "critical batch ÷ noise scale"),
            fact("Loss before", significant(found.before, 4), "", "held-out"),
            fact("Margin", si(found.margin), "", "worse by less is as good"),
            fact("Cost", si(cost.steps), "steps", f"{si(cost.examples)} {unit}"),
            fact("Time", duration(cost.seconds) if cost.seconds is not None else NOTHING, "", usd),
        ],
        className="facts mb16",
    )


def _known(found: Interval) -> str:
    """The value, or its bounds."""
    if found.value is not None:
        return significant(found.value)
    if found.low is not None and found.high is not None:
        return span(found.low, found.high)
    if found.low is not None:
        return f"> {significant(found.low)}"
    return f"< {significant(found.high)}" if found.high is not None else NOTHING


def _noise_context(found: Branch) -> str:
    where = f"at step {count(found.step)}" if found.step is not None else "at the branching point"
    scale = found.noise_scale
    if scale.value is None:
        return f"not resolved {where}"
    return f"{span(scale.low, scale.high)}, {where}"


def _table_card(found: Branch) -> html.Section:
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in ARM_COLUMNS]))
    table = html.Table([head, html.Tbody([_row(arm) for arm in found.arms])], className="tb fold")
    level = next((arm.level for arm in found.arms if arm.level is not None), None)
    limits = f"limits: one-sided, {share(level)} each" if level is not None else "no limits"
    return card(
        "Arms",
        f"The present setting first · {limits}",
        html.Div(table, className="scrollx-in", tabIndex="0"),
        card_id="sweep-arms-table",
        class_name="mb16",
        has_table=True,
    )


def _row(arm: Arm) -> html.Tr:
    words = [
        count(arm.batch_size),
        _rates(arm),
        count(arm.num_steps),
        significant(arm.loss, 4),
        _signed(arm.difference),
        f"{_signed(arm.low)} to {_signed(arm.high)}" if arm.low is not None else NOTHING,
    ]
    time = duration(arm.seconds) if arm.seconds is not None else NOTHING
    verdict = html.Td(branch_arms.verdict_words(arm), className="s")
    return html.Tr(labelled([*(html.Td(word) for word in words), verdict, html.Td(time)], ARM_COLUMNS))


def _rates(arm: Arm) -> str:
    """The learning rate, and where a schedule has led it."""
    moved = arm.lr_at_end is not None and arm.lr_at_end != arm.lr
    return f"{rate(arm.lr)} → {rate(arm.lr_at_end)}" if moved else rate(arm.lr)


def _signed(value: float | None) -> str:
    if value is None:
        return NOTHING
    return significant(value) if value < 0 else f"+{significant(value)}"
