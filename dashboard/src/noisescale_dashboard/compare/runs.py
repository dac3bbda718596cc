"""Runs side by side: noise scale, loss, batch or efficiency over one axis, and the ratio of their noise scales."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dash_mantine_components as dmc
from dash import html

from noisescale_dashboard import baseline
from noisescale_dashboard.answers.common import Interval, Run
from noisescale_dashboard.answers.comparisons import ComparedRuns
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.compare import ratios as compare_ratios
from noisescale_dashboard.compare import words as compare_sentences
from noisescale_dashboard.figures.comparison import noise_scale_ratio, runs_side_by_side
from noisescale_dashboard.figures.comparison.runs_side_by_side import Axes, RunMark
from noisescale_dashboard.figures.parts.theme import RUN_COLORS
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, decision_label, figure_box, link, note, status_dot
from noisescale_dashboard.words.names import told_apart
from noisescale_dashboard.words.number_format import NOTHING, count, share, share_span, si, significant, span
from noisescale_dashboard.words.sentences import estimate_words, noun_of

GRAPHS = ("runs", "ratio")
MAX_RUNS = 20
POINTS = 200
X_CHOICES = (("step", "Step"), ("units", "Units"), ("time", "Time"), ("loss", "Loss"))
Y_CHOICES = (("noise", "Noise scale"), ("loss", "Loss"), ("batch", "Batch"), ("efficiency", "Efficiency"))
TITLES = {
    "noise": "Noise scale B_noise",
    "loss": "Training loss",
    "batch": "Batch in use",
    "efficiency": "Example efficiency",
}
SUBTITLES = {
    "noise": "{noun}, log · band: 95 % interval · dashed: batch in use · dotted: at least",
    "loss": "Mean of the steps of each point",
    "batch": "{noun}, log",
    "efficiency": "Share of each example that the batch uses · band: 95 % interval",
}
WHERE = {"step": "step", "units": "{unit} seen", "time": "time since each start", "loss": "loss"}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs of a view that exist, the one first that the others are compared to.

    Attributes:
        runs: In order.
        names: As they are called here.
        slots: Of their colours; None: grey.
        unknown: Ids without a run.
        is_base_named: Whether the address says which is first.
    """

    runs: tuple[Run, ...]
    names: tuple[str, ...]
    slots: tuple[int | None, ...]
    unknown: tuple[str, ...] = ()
    is_base_named: bool = False

    @property
    def unit(self) -> str:
        """What all of them count in, else "units"."""
        units = {run.unit for run in self.runs}
        return units.pop() if len(units) == 1 else "units"

    @property
    def noun(self) -> str:
        """The plural of what an example is in all of them, else "examples"."""
        nouns = {noun_of(run) for run in self.runs}
        return nouns.pop() if len(nouns) == 1 else "examples"


def cards(*, narrow: bool) -> list[html.Section]:
    """The cards before their first data."""
    height = runs_side_by_side.NARROW_HEIGHT if narrow else runs_side_by_side.HEIGHT
    return [
        card(
            TITLES["noise"],
            "",
            figure_box("compare-runs", card_id="compare-runs-card", height=height),
            card_id="compare-runs-card",
            actions=[
                _switch("compare-y", Y_CHOICES, "noise", "What is compared"),
                _switch("compare-x", X_CHOICES, "step", "Where runs stand equal"),
            ],
            footer=[],
            is_figure=True,
            class_name="runs-card",
        ),
        card(
            "Ratio of noise scales",
            "",
            figure_box("compare-ratio", card_id="compare-ratio-card", height=noise_scale_ratio.HEIGHT),
            card_id="compare-ratio-card",
            actions=_base_choice(),
            footer=[],
            is_figure=True,
            class_name="ratio-card",
        ),
        card(
            "Runs",
            "",
            html.Div(id="compare-table", className="scrollx-in", tabIndex="0"),
            card_id="compare-table-card",
            has_table=True,
            class_name="table-card",
        ),
    ]


def _switch(switch_id: str, choices: Sequence[tuple[str, str]], value: str, label: str) -> dmc.SegmentedControl:
    return dmc.SegmentedControl(
        id=switch_id,
        data=[{"value": name, "label": words} for name, words in choices],
        value=value,
        size="xs",
        **aria({"aria-label": label}),
    )


def _base_choice() -> html.Div:
    choice = dmc.Select(
        id="compare-base",
        data=[],
        value=None,
        placeholder="Compare to another",
        size="xs",
        w=186,
        **aria({"aria-label": "Run that the others are compared to"}),
    )
    return html.Div(choice, id="compare-base-box", hidden=True)


async def read(api: ApiClient, visitor: Mapping[str, str], view: Mapping[str, Any]) -> Chosen:
    """The runs of the view, in its order, but for the one that the others are compared to: it comes first.

    That is the run that the address names, else the pinned baseline of the project, also where it is none of the
    chosen ones, else the first with a clear estimate.

    Raises:
        ApiProblem: When the API does not answer; a run that does not exist is none.
    """
    ids = [str(run_id) for run_id in view["runs"]][:MAX_RUNS]
    found = await asyncio.gather(*(_run_or_none(api, visitor, run_id) for run_id in ids))
    known = [(run, slot) for run, slot in zip(found, slots_of(view, len(ids)), strict=True) if run is not None]
    named = next((run for run, _ in known if run.id == view.get("base")), None)
    if named is None and len(ids) < MAX_RUNS:
        free = next((slot for slot in range(len(RUN_COLORS)) if slot not in [taken for _, taken in known]), None)
        known += [(run, free) for run in await _pinned(api, visitor, [run for run, _ in known])]
    base = named or base_of([run for run, _ in known])
    known.sort(key=lambda one: one[0] is not base)
    runs = tuple(run for run, _ in known)
    unknown = tuple(run_id for run_id, run in zip(ids, found, strict=True) if run is None)
    slots = tuple(slot for _, slot in known)
    return Chosen(runs, tuple(names_of(runs)), slots, unknown, is_base_named=named is not None)


def base_of(runs: Sequence[Run]) -> Run | None:
    """The run that others are compared to where nobody says which: a pinned one, the first clear one, or the first."""
    clear = [run for run in runs if is_clear(run)]
    return next((run for run in clear if run.is_baseline), next(iter([*clear, *runs]), None))


async def _pinned(api: ApiClient, visitor: Mapping[str, str], runs: Sequence[Run]) -> list[Run]:
    """The baseline of the project of all these runs, where it is none of them and counts in the same."""
    projects = {run.project for run in runs}
    if len(projects) != 1 or any(run.is_baseline for run in runs):
        return []
    try:
        pinned = await api.baseline(visitor, projects.pop())
    except ApiProblem:
        # who may read the runs reads it; without it there is a page, too
        return []
    found = None if pinned is None else await _run_or_none(api, visitor, pinned.run_id)
    return [] if found is None or {noun_of(run) for run in runs} != {noun_of(found)} else [found]


def is_clear(run: Run) -> bool:
    """Whether others can be compared to the run: its noise scale is resolved, and it has not diverged."""
    return run.noise_scale.state == "resolved" and run.divergence is None


def baselines(chosen: Chosen) -> list[dict[str, Any]]:
    """Runs that the others can be compared to instead of the first: those without a clear estimate cannot be chosen."""
    others = list(zip(chosen.runs, chosen.names, strict=True))[1:]
    others.sort(key=lambda one: not is_clear(one[0]))
    return [
        {"value": run.id, "label": name}
        if is_clear(run)
        else {"value": run.id, "label": f"{name} · no clear estimate", "disabled": True}
        for run, name in others
    ]


async def _run_or_none(api: ApiClient, visitor: Mapping[str, str], run_id: str) -> Run | None:
    try:
        return await api.run(visitor, run_id)
    except ApiProblem as problem:
        if problem.is_missing:
            return None
        raise


def slots_of(view: Mapping[str, Any], number: int) -> list[int | None]:
    """The slot of each run's colour as the browser has given them out; what is no slot is grey."""
    given = list(view.get("colors") or ())[:number]
    slots = [slot if isinstance(slot, int) and 0 <= slot < len(RUN_COLORS) else None for slot in given]
    return [*slots, *[None] * (number - len(slots))]


def names_of(runs: Sequence[Run]) -> list[str]:
    """Names that tell the runs apart, without what all begin with: those that share one get the end of their id."""
    names = told_apart([run.name for run in runs])
    return [f"{name} · {run.id[-6:]}" if names.count(name) > 1 else name for run, name in zip(runs, names, strict=True)]


def changes(chosen: Chosen, found: ComparedRuns, view: Mapping[str, Any], *, narrow: bool) -> dict[str, Any]:
    """What the page shows of the runs."""
    y = view["y"] if view["y"] in TITLES else "noise"
    by = Axes(found.x, y, chosen.unit, chosen.noun, narrow)
    looks = [
        RunMark(name, slot, is_live(run), _latest(run), whole=run.name)
        for name, slot, run in zip(chosen.names, chosen.slots, chosen.runs, strict=True)
    ]
    where = compare_sentences.axis_words(found.x, chosen.unit)
    same = compare_ratios.alike(chosen.runs)
    ratio = noise_scale_ratio.noise_scale_ratio(
        [found.ratios[i] for i in same], [looks[1:][i] for i in same], by, reference=chosen.names[0]
    )
    said = compare_ratios.sentence(chosen.runs, chosen.names, found.ratios, where)
    return {
        "compare-head.children": compare_sentences.runs_headline(
            chosen.names, found.ratios, where, are_alike=len(same) == len(found.ratios)
        ),
        "compare-lede.children": lede(chosen),
        "compare-run-figures.data": {"runs": runs_side_by_side.runs_side_by_side(found, looks, by), "ratio": ratio},
        "compare-runs-card-title.children": f"{TITLES[by.y]} over {WHERE[by.x].format(unit=chosen.unit)}",
        "compare-runs-card-subtitle.children": subtitle(by),
        "compare-runs-card-footer.children": _legend(chosen) if narrow or len(chosen.runs) > len(RUN_COLORS) else None,
        "compare-runs-sentence.children": f"{TITLES[by.y]} of {', '.join(chosen.names)} at {where}. {said}",
        "compare-ratio-card-subtitle.children": f"To {chosen.names[0]}, at {where}, log · band: 95 % interval",
        "compare-ratio-card-footer.children": compare_ratios.footer(chosen.runs, chosen.names, found.ratios),
        "compare-ratio-sentence.children": said,
        "compare-base.data": baselines(chosen),
        "compare-base-box.hidden": len(chosen.runs) < 3,
        "compare-runs-only.className": "compare-runs" if len(chosen.runs) > 1 else "compare-runs one-run",
        "compare-table.children": table(chosen, narrow=narrow),
        "compare-table-card-subtitle.children": f"{chosen.noun.capitalize()} · newest values · interval: 95 %",
    }


def _latest(run: Run) -> Interval:
    return Interval(run.noise_scale.value, run.noise_scale.low, run.noise_scale.high)


def is_live(run: Run) -> bool:
    """Whether news of the run can be expected."""
    return run.status in ("running", "silent")


def lede(chosen: Chosen) -> str:
    """How many runs, of what, and which the others are compared to where nobody has said it."""
    tasks = {f"{run.project} · {run.task}" for run in chosen.runs}
    nouns = {noun_of(run) for run in chosen.runs}
    said = f"{len(chosen.runs)} runs of {tasks.pop() if len(tasks) == 1 else f'{len(tasks)} tasks'}."
    if len(nouns) > 1:
        said += f" They count different things ({', '.join(sorted(nouns))}): each noise scale is in its own examples."
    return said + _said_of_baseline(chosen)


def _said_of_baseline(chosen: Chosen) -> str:
    """That the others are compared to a pinned run, or why they are not."""
    places = [place for place, run in enumerate(chosen.runs) if run.is_baseline]
    if not places or chosen.is_base_named:
        return ""
    name = chosen.names[places[0]]
    if places[0] == 0:
        return f" Compared to the project's baseline, {name}."
    return f" The project's baseline, {name}, has no clear estimate: compared to {chosen.names[0]}."


def subtitle(by: Axes) -> str:
    """Unit, scale, and what is drawn beside the values; over the loss only dots are."""
    said = SUBTITLES[by.y].format(noun=by.noun)
    if by.x == "loss":
        said = f"{said.split(' · ')[0]} · a dot each window"
    return said[:1].upper() + said[1:]


def _legend(chosen: Chosen) -> list[Child]:
    """Colours and names, where the figure has no room for them."""
    return [html.Span([swatch(slot), name]) for name, slot in zip(chosen.names, chosen.slots, strict=True)]


def swatch(slot: int | None) -> html.Span:
    """The colour of a run; grey for one without."""
    return html.Span(className=f"sw run{slot + 1}" if slot is not None else "sw run0")


COLUMNS = ("Run", "Noise scale", "Batch", "Efficiency", "Loss", "Step")
NARROW_COLUMNS = ("Run", "Noise scale, batch")


def table(chosen: Chosen, *, narrow: bool) -> html.Table:
    """A row a run; on a phone each row has two lines."""
    words, row = (NARROW_COLUMNS, _narrow_row) if narrow else (COLUMNS, _row)
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    alone = len({noun_of(run) for run in chosen.runs}) == 1
    rows = [row(*one, alone=alone) for one in zip(chosen.runs, chosen.names, chosen.slots, strict=True)]
    return html.Table([head, html.Tbody(rows)], className="tb compared short" if narrow else "tb compared")


def _name(run: Run, name: str, slot: int | None) -> list[Child]:
    mark = [baseline.mark()] if run.is_baseline else []
    return [swatch(slot), status_dot(run), link(name[:120], f"/runs/{run.id}", title=run.name), *mark]


def _row(run: Run, name: str, slot: int | None, *, alone: bool) -> html.Tr:
    efficiency = run.example_efficiency
    return html.Tr(
        [
            html.Td(html.Div(_name(run, name, slot), className="row"), className="name"),
            _two_lines(estimate_words(run.noise_scale), _interval_and_unit(run, alone=alone)),
            _two_lines(count(run.global_batch), decision_label(run)),
            _two_lines(share(efficiency.value), share_span(efficiency.low, efficiency.high)),
            html.Td(NOTHING if run.loss is None else significant(run.loss, 4)),
            html.Td(si(run.last_step)),
        ]
    )


def _interval_and_unit(run: Run, *, alone: bool) -> str:
    """In short: "1,130 – 1,960 sequences"; of a run that is not resolved the unit alone.

    Args:
        run: Of the table.
        alone: Leave out the unit, which all runs of the table share.
    """
    noun, found = "" if alone else f" {noun_of(run)[:16]}", run.noise_scale
    if found.value is None:
        return noun.strip()
    return f"{span(found.low, found.high)}{noun}" + ("" if found.state == "resolved" else ", tentative")


def _two_lines(above: str, below: str) -> html.Td:
    return html.Td([above, html.Span(below, className="below")])


def _narrow_row(run: Run, name: str, slot: int | None, *, alone: bool) -> html.Tr:
    return html.Tr(
        [
            html.Td(html.Div(_name(run, name, slot), className="row"), className="name"),
            html.Td(
                [
                    estimate_words(run.noise_scale),
                    html.Span(_interval_and_unit(run, alone=alone), className="below"),
                    html.Span(f"batch {count(run.global_batch)}, {decision_label(run)}", className="below"),
                ]
            ),
        ]
    )


def unknown_note(chosen: Chosen, num_asked: int) -> html.Div | None:
    """Which runs of the address do not exist, and how many are more than can be shown."""
    said = []
    if chosen.unknown:
        runs = "No run has this id" if len(chosen.unknown) == 1 else "No runs have these ids"
        shown = ", ".join(run_id[:40] for run_id in chosen.unknown[:5]) + (" …" if len(chosen.unknown) > 5 else "")
        said.append(f"{runs}: {shown}. The others are shown.")
    if num_asked > MAX_RUNS:
        said.append(f"Of the {num_asked} runs in the address the first {MAX_RUNS} are shown.")
    return note(" ".join(said)) if said else None


def no_runs(*, unknown: Sequence[str]) -> html.Section:
    """How to choose runs, where there is nothing to compare yet."""
    text = (
        "Choose runs above, or tick them in the list of runs and press Compare (key c). Two to five runs get a colour "
        f"each; up to {MAX_RUNS} are drawn."
    )
    head = "None of these runs exists" if unknown else "No runs chosen yet"
    gone = [html.P(f"Deleted, or a wrong address: {', '.join(one[:40] for one in unknown[:5])}.", className="t2")]
    return html.Section(
        [
            html.H2(head, className="tt"),
            *(gone if unknown else []),
            html.P(text, className="t2"),
            html.P(link("Choose from the list of runs", "/runs", class_name="btn")),
        ],
        className="card empty",
    )
