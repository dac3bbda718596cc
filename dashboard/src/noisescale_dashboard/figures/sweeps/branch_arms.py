"""The arms of a branch against the present setting: difference of the held-out loss, its limits, the margin.

The axis reaches as far as the arms that matter: those near the margin. An arm far worse stands at the right edge as ▸
with its number beside it; on an axis that holds all, the others would lie on one point.
"""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.answers.branches import Arm, Branch
from noisescale_dashboard.figures.parts import labels, marks
from noisescale_dashboard.figures.parts.data_table import attach_table
from noisescale_dashboard.figures.parts.theme import FONT, LIGHT, blank_figure
from noisescale_dashboard.words.number_format import count, rate, si, significant

ROW_HEIGHT, TOP, BOTTOM = 40, 30, 40
LEFT, NARROW_LEFT, RIGHT, NARROW_RIGHT = 196, 96, 96, 70
FAR = 8.0
"""Arms further off than so many times the margin, or the limits of those within it, are told at the edge."""
OUT = "out of the axis"
VERDICT_WORDS = {"as_good": "as good", "worse": "worse", "open": "open"}


def branch_arms(branch: Branch, *, narrow: bool) -> go.Figure:
    """A row an arm: its loss minus the present setting's, whiskers to the one-sided limits, the margin dashed."""
    arms = branch.arms
    figure = blank_figure(
        height=height(len(arms)), left=NARROW_LEFT if narrow else LEFT,
        right=NARROW_RIGHT if narrow else RIGHT, top=TOP, bottom=BOTTOM,
    )  # fmt: skip
    figure.update_layout(hovermode="closest", hoverdistance=14)
    figure.update_yaxes(
        tickvals=list(range(len(arms))), ticktext=[arm_words(arm, narrow=narrow) for arm in arms],
        range=[len(arms) - 0.5, -0.5], showgrid=False, ticklabelstandoff=6,
    )  # fmt: skip
    ends = _ends(branch)
    figure.update_xaxes(range=ends, showspikes=False, nticks=5 if narrow else 8, tickformat="~g")
    figure.add_vline(x=0, line={"color": LIGHT.axis, "width": 1}, layer="below")
    if branch.margin is not None:
        figure.add_vline(x=branch.margin, line={"color": LIGHT.text_3, "width": 1.25, "dash": "4px,4px"}, layer="below")
        figure.add_annotation(
            x=branch.margin, y=1, yref="paper", text=f"margin {si(branch.margin)}", xanchor="center",
            yanchor="bottom", yshift=4, showarrow=False, font={"size": 12, "color": LIGHT.text_3, "family": FONT},
        )  # fmt: skip
    _add_arms(figure, arms)
    _add_far(figure, arms, ends)
    _write_verdicts(figure, arms)
    labels.write_x_title(figure, "loss minus the present setting's")
    attach_table(figure, _columns(arms))
    return figure


def height(num_arms: int) -> int:
    """Pixels of the figure."""
    return num_arms * ROW_HEIGHT + TOP + BOTTOM


def arm_words(arm: Arm, *, narrow: bool) -> str:
    """In short: "batch 64, LR 0.1", or the batch alone where space is short."""
    return f"batch {count(arm.batch_size)}" + ("" if narrow else f", LR {rate(arm.lr)}")


def _ends(branch: Branch) -> list[float]:
    near = [arm for arm in branch.arms if arm.difference is not None and abs(arm.difference) <= _reach(branch)]
    known = [0.0, branch.margin or 0.0]
    known += [end for arm in near for end in (arm.difference, arm.low, arm.high) if end is not None]
    room = 0.1 * (max(known) - min(known)) or 0.01
    return [min(known) - room, max(known) + room]


def _reach(branch: Branch) -> float:
    """How far from the present setting an arm is drawn in its place; any, where nobody has said a margin."""
    if not branch.margin:
        return float("inf")
    within = [arm for arm in branch.arms if arm.difference is not None and abs(arm.difference) <= FAR * branch.margin]
    limits = [abs(end) for arm in within for end in (arm.low, arm.high) if end is not None]
    return max([FAR * branch.margin, *limits])


def num_far(branch: Branch) -> int:
    """Arms that stand at the edge, further off than the axis reaches.

    Args:
        branch: With its arms.
    """
    low, high = _ends(branch)
    return sum(arm.difference is not None and not low <= arm.difference <= high for arm in branch.arms)


def _add_far(figure: go.Figure, arms: Sequence[Arm], ends: Sequence[float]) -> None:
    """▸ or ◂ at the edge, with the difference."""
    far = [
        (row, arm.difference)
        for row, arm in enumerate(arms)
        if arm.difference is not None and not ends[0] <= arm.difference <= ends[1]
    ]
    figure.add_scatter(
        x=[ends[value > 0] for _, value in far], y=[row for row, _ in far], name=OUT, mode="markers", cliponaxis=False,
        marker={
            "size": 10, "color": LIGHT.noise,
            "symbol": ["triangle-right" if value > 0 else "triangle-left" for _, value in far],
        },
        customdata=[[arm_words(arms[row], narrow=False), significant(value)] for row, value in far],
        hovertemplate="%{customdata[0]}<br>difference <b>%{customdata[1]}</b>, beyond the axis<extra></extra>",
    )  # fmt: skip
    for row, value in far:
        figure.add_annotation(
            x=ends[value > 0], y=row, text=f"{'+' if value > 0 else ''}{significant(value, 2)}",
            xanchor="right" if value > 0 else "left", yanchor="middle", xshift=-10 if value > 0 else 10,
            showarrow=False, font={"size": 12, "color": LIGHT.noise_text, "family": FONT},
        )  # fmt: skip


def _add_arms(figure: go.Figure, arms: Sequence[Arm]) -> None:
    low, high = figure.layout.xaxis.range
    rows = [
        (row, arm, arm.difference)
        for row, arm in enumerate(arms)
        if arm.difference is not None and low <= arm.difference <= high
    ]
    figure.add_scatter(
        x=[value for _, _, value in rows], y=[row for row, _, _ in rows], name="arm", mode="markers",
        marker=marks.ringed(LIGHT.noise, size=10),
        error_x=marks.whiskers(
            [value for _, _, value in rows], [arm.low for _, arm, _ in rows], [arm.high for _, arm, _ in rows],
            LIGHT.noise,
        ),
        customdata=[
            [arm_words(arm, narrow=False), significant(value), significant(arm.low), significant(arm.high)]
            for _, arm, value in rows
        ],
        hovertemplate="%{customdata[0]}<br>difference <b>%{customdata[1]}</b>, one-sided limits %{customdata[2]} and "
        "%{customdata[3]}<extra></extra>",
    )  # fmt: skip
    present = [row for row, arm in enumerate(arms) if arm.verdict is None and arm.loss is not None]
    figure.add_scatter(
        x=[0.0] * len(present), y=present, name="present setting", mode="markers", hoverinfo="skip",
        marker=marks.ringed(LIGHT.batch, size=10) | {"symbol": "square"},
    )  # fmt: skip


def _write_verdicts(figure: go.Figure, arms: Sequence[Arm]) -> None:
    for row, arm in enumerate(arms):
        figure.add_annotation(
            x=1, xref="paper", y=row, text=f"<b>{verdict_words(arm)}</b>", xanchor="left", yanchor="middle", xshift=10,
            showarrow=False, font={"size": 12, "color": LIGHT.text_2, "family": FONT},
        )  # fmt: skip


def verdict_words(arm: Arm) -> str:
    """In short: "present", "as good", "worse", "open" or "diverged"."""
    if arm.loss is None:
        return "diverged"
    return "present" if arm.verdict is None else VERDICT_WORDS.get(arm.verdict, arm.verdict)


def _columns(arms: Sequence[Arm]) -> dict[str, list[float | str | bool | None]]:
    """A row an arm."""
    return {
        "batch size": [arm.batch_size for arm in arms],
        "learning rate": [arm.lr for arm in arms],
        "steps": [arm.num_steps for arm in arms],
        "held-out loss": [arm.loss for arm in arms],
        "difference": [arm.difference for arm in arms],
        "lower limit": [arm.low for arm in arms],
        "upper limit": [arm.high for arm in arms],
        "level of each limit": [arm.level for arm in arms],
        "verdict": [verdict_words(arm) for arm in arms],
        "seconds": [arm.seconds for arm in arms],
    }
