"""The noise scale between the runs of a sweep: a card of its own, as it is a kind of its own."""

from dash import html

from noisescale_dashboard.answers.sweeps import AtLoss, BetweenRuns, Sweep
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, labelled, note
from noisescale_dashboard.words.number_format import count, exactly, share, si, significant

TITLE = "Noise scale between runs"
COLUMNS = ("Loss", "Noise scale", "95 %", "Batch sizes")
FLAG = "different parameters"
WHAT_IT_IS = (
    "From gradient norms of runs at equal loss, |g_B|² = |G|² + tr Σ ÷ B, so of different parameters: tr Σ hardly "
    "differs by that, |G|² does. It is the noise scale of runs with large batches. No advice rests on it."
)


def changes(sweep: Sweep) -> dict[str, Child | None]:
    """What the callback of the page sets of it: the card, and none where nothing was said of it."""
    found = sweep.noise_scale_between_runs
    return {"sweep-between.children": None if found is None else _card(found, sweep.unit)}


def _card(found: BetweenRuns, unit: str) -> html.Section:
    flag = html.Span(FLAG, className="chip")
    footer: list[Child] = [note(WHAT_IT_IS, icon_name="info", quiet=True)]
    if not found.losses:
        missing = html.P(f"Nothing follows: {found.missing}.", className="t2")
        return card(TITLE, "", missing, card_id="sweep-between-card", footer=footer, class_name="mt16")
    spread = share(max(one.spread for one in found.losses))
    return card(
        TITLE,
        [flag, f" near each loss, in examples; runs are taken to differ by {spread}"],
        html.Div(_table(found.losses), className="scrollx-in", tabIndex="0"),
        card_id="sweep-between-card",
        footer=footer,
        class_name="mt16",
        has_table=True,
    )


def _table(losses: tuple[AtLoss, ...]) -> html.Table:
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in COLUMNS]))
    return html.Table([head, html.Tbody([_row(one) for one in losses])], className="tb fold")


def _row(one: AtLoss) -> html.Tr:
    value = "not resolved" if one.value is None else significant(one.value)
    cells = [
        html.Td(exactly(float(f"{one.loss:.4g}"))),
        html.Td(value, className="s" if one.value is not None else "dim"),
        html.Td(_interval(one), className="t2"),
        html.Td(", ".join(count(size) for size in one.batch_sizes), className="t2"),
    ]
    return html.Tr(labelled(cells, COLUMNS))


def _interval(one: AtLoss) -> str:
    low = "0" if one.low is None else si(one.low)
    return f"above {low}" if one.high is None else f"{low} – {si(one.high)}"
