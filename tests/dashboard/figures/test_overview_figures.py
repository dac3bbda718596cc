"""The figures of the overview: which runs are off, and small panels of what runs."""

import math

import plotly.graph_objects as go
import pytest

from fakes_runs import HOSTILE, RUNS, series_json
from noisescale_dashboard.answers.series import ShortSeries, noise_scale_series
from noisescale_dashboard.figures.comparison.misfit import AXIS_END, MisfitRow, height_of, misfit, result_words
from noisescale_dashboard.figures.comparison.small_multiples import Panel, small_multiples
from noisescale_dashboard.figures.parts.data_table import attached_columns
from noisescale_dashboard.figures.parts.theme import LIGHT

SMALL = MisfitRow("1", "timid", "seq", 512, "increase", 1536, 800, 2900, 1130, 1960)
LARGE = MisfitRow("2", "wasteful", "img", 512, "decrease", 44, 22, 90, 38, 52)
OPEN = MisfitRow("3", "open", "utt", 256, "insufficient_evidence", bound=410)


def marks(figure) -> dict[str, tuple[float, str]]:  # type: ignore[no-untyped-def]
    """Run → (where its mark stands, its symbol)."""
    drawn = [trace for trace in figure.data if trace.name == "batch now"]
    return {trace.customdata[0][0]: (trace.x[0], trace.marker.symbol) for trace in drawn}


def test_a_run_stands_at_its_batch_over_the_recommended_one() -> None:
    figure = misfit([SMALL, LARGE], narrow=False)

    assert marks(figure) == {"1": (pytest.approx(1 / 3), "square"), "2": (pytest.approx(512 / 44), "square")}


def test_the_most_timid_run_is_on_top() -> None:
    figure = misfit([LARGE, SMALL], narrow=False)

    heights = {trace.customdata[0][0]: trace.y[0] for trace in figure.data if trace.name == "batch now"}
    assert heights["1"] > heights["2"]


def test_both_intervals_are_drawn_the_wider_one_thinner() -> None:
    figure = misfit([SMALL], narrow=False)

    bars = [(trace.x[0], trace.x[1], trace.line.width) for trace in figure.data if trace.mode == "lines"]
    assert bars == [
        (pytest.approx(512 / 2900), pytest.approx(512 / 800), 2),
        (pytest.approx(512 / 1960), pytest.approx(512 / 1130), 7),
    ]


def test_an_unresolved_run_is_open_and_has_no_bar_and_no_batch() -> None:
    figure = misfit([OPEN], narrow=False)

    assert marks(figure) == {"3": (pytest.approx(256 / 410), "square-open")}
    assert [trace.line.dash for trace in figure.data if trace.mode == "lines"] == ["2px,3px"]
    assert result_words(OPEN) == "256, noise > 410"


def test_what_lies_beyond_the_axis_points_outwards_at_its_end() -> None:
    far = MisfitRow("4", "far", "img", 64, "increase", 64_000, 30_000, 90_000, 50_000, 70_000)

    figure = misfit([far], narrow=False)

    assert marks(figure) == {"4": (pytest.approx(1 / AXIS_END), "triangle-left")}


def test_decisions_are_written_in_their_colours() -> None:
    figure = misfit([SMALL, LARGE, OPEN], narrow=False)

    written = {note.text: note.font.color for note in figure.layout.annotations}
    assert written["512 → <b>1,536</b>"] == LIGHT.noise_text
    assert written["512 → <b>44</b>"] == LIGHT.batch_text
    assert written["256, noise > 410"] == LIGHT.text_3


def test_a_resolved_run_without_a_decision_is_undecided_and_not_kept() -> None:
    row = MisfitRow("5", "unsure", "img", 512, "insufficient_evidence", 900, 100, 8000, 700, 1100)

    assert result_words(row) == "512, undecided"


def test_names_are_text_and_the_export_has_the_numbers() -> None:
    figure = misfit([MisfitRow("6", HOSTILE, "img", 512, "increase", 1024, 700, 1500, 800, 1300), OPEN], narrow=True)

    assert not any("<img" in (note.text or "") for note in figure.layout.annotations)
    columns = attached_columns(figure)
    assert columns["run"] == [HOSTILE, "open"]
    assert columns["batch ÷ recommended"] == [0.5, None]
    assert columns["noise scale above (examples)"] == [None, 410]


def test_the_height_follows_the_number_of_rows() -> None:
    assert misfit([SMALL, LARGE, OPEN], narrow=False).layout.height == height_of(3, narrow=False)
    assert height_of(12, narrow=True) > height_of(6, narrow=True)


def panel(number: int) -> Panel:
    run = RUNS[number]
    series = noise_scale_series(series_json(run, points=40))
    return Panel(run.id, run.name, "seq", ShortSeries(series.points), series.latest)


def test_each_panel_has_axes_of_its_own() -> None:
    figure = go.Figure(small_multiples([panel(0), panel(1), panel(6)], narrow=False).to_dict())

    lines = [trace for trace in figure.data if trace.name == "noise scale"]
    assert [trace.yaxis for trace in lines] == ["y", "y2", "y3"]
    for axis, trace in zip((figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3), lines, strict=True):
        known = [v for v in trace.y if v is not None]
        assert axis.range[0] < math.log10(sorted(known)[2])
        assert math.log10(max(known)) < axis.range[1]


def test_an_unresolved_run_has_a_dotted_bound_and_no_line() -> None:
    figure = small_multiples([panel(5)], narrow=False)

    values = next(trace.y for trace in figure.data if trace.name == "noise scale")
    bounds = [trace for trace in figure.data if trace.name == "bound"]
    assert set(values) == {None}
    assert [trace.line.dash for trace in bounds] == ["2px,3px"]
    assert "> 344 seq" in [note.text for note in figure.layout.annotations]


def test_a_phone_has_two_panels_in_a_row() -> None:
    wide, narrow = (
        go.Figure(small_multiples([panel(n) for n in range(6)], narrow=narrow).to_dict()) for narrow in (False, True)
    )

    assert narrow.layout.height == 3 * wide.layout.height
    assert narrow.layout.xaxis3.domain[0] == narrow.layout.xaxis.domain[0]
