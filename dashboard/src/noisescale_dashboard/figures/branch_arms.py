"""The arms of a branch against the present setting: difference of the held-out loss, its limits, the margin."""

from collections.abc import Sequence

import plotly.graph_objects as go

from noisescale_dashboard.branch_answers import Arm, Branch
from noisescale_dashboard.figures import labels, marks
from noisescale_dashboard.figures.data_table import attach_table
from noisescale_dashboard.figures.theme import FONT, LIGHT, blank_figure
from noisescale_dashboard.number_format import count, rate, si, significant

ROW_HEIGHT, TOP, BOTTOM = 40, 30, 40
LEFT, NARROW_LEFT, RIGHT, NARROW_RIGHT = 196, 96, 96, 70
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
    figure.update_xaxes(range=_ends(branch), showspikes=False, nticks=5 if narrow else 8, tickformat="~g")
    figure.add_vline(x=0, line={"color": LIGHT.axis, "width": 1}, layer="below")
    if branch.margin is not None:
        figure.add_vline(x=branch.margin, line={"color": LIGHT.text_3, "width": 1.25, "dash": "4px,4px"}, layer="below")
        figure.add_annotation(
            x=branch.margin, y=1, yref="paper", text=f"margin {si(branch.margin)}", xanchor="center",
            yanchor="bottom", yshift=4, showarrow=False, font={"size": 12, "color": LIGHT.text_3, "family": FONT},
        )  # fmt: skip
    _add_arms(figure, arms)
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
    known = [0.0, branch.margin or 0.0]
    known += [end for arm in branch.arms for end in (arm.difference, arm.low, arm.high) if end is not None]
    room = 0.1 * (max(known) - min(known)) or 0.01
    return [min(known) - room, max(known) + room]


def _add_arms(figure: go.Figure, arms: Sequence[Arm]) -> None:
    rows = [(row, arm, arm.difference) for row, arm in enumerate(arms) if arm.difference is not None]
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
