"""Ticks, ranges, and names that must not become markup."""

import pytest

from fakes_runs import HOSTILE
from noisescale_dashboard.answers.series import Event
from noisescale_dashboard.figures.parts import axes, labels, marks


@pytest.mark.parametrize(("low", "high"), [(50, 5000), (1e-6, 1e2), (812, 1190), (0.5, 30), (1, 1e12), (3, 4)])
def test_a_log_axis_has_between_two_and_nine_ticks_inside_its_range(low: float, high: float) -> None:
    ticks = axes.log_ticks(low, high)

    assert 2 <= len(ticks) <= 9
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)


def test_the_range_only_moves_when_data_leave_it() -> None:
    assert axes.log_range(100, 1000) == axes.log_range(101, 995)
    low, high = axes.log_range(100, 1000)
    assert low < 100 < 1000 < high


def test_batch_ticks_are_powers_of_two() -> None:
    assert axes.power_of_two_ticks(230, 5000) == ([256, 512, 1024, 2048, 4096], ["256", "512", "1k", "2k", "4k"])


def test_small_ticks_are_powers_of_ten_in_words() -> None:
    assert axes.power_of_ten(1e-5) == "10⁻⁵"
    assert axes.power_of_ten(3e-5) == "3×10⁻⁵"


def test_pushed_apart_labels_keep_their_order_and_their_gap() -> None:
    placed = labels.spread([100, 102], [28, 14])

    assert placed[1] - placed[0] == pytest.approx(21)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event(1, "lr", 0.1, 0.03), "LR ÷3.3"),
        (Event(1, "batch", 256, 512), "batch ×2"),
        (Event(1, "resumed"), "resumed"),
        (Event(1, "<b>", 1, 2), "&lt;b&gt; ×2"),
    ],
)
def test_events_in_words(event: Event, words: str) -> None:
    assert labels.event_words(event) == words


def test_three_labels_at_one_place_are_pushed_apart() -> None:
    below, middle, above = labels.spread([50.0, 50.0, 51.0], [28, 28, 28])

    assert middle - below > 27.9
    assert above - middle > 27.9


def test_a_name_is_never_markup() -> None:
    shown = labels.plain(HOSTILE)

    assert "<" not in shown
    assert "$\\" not in shown
    assert labels.plain("abc\u202edef") == "abc�def"
    assert len(labels.plain("x" * 10_000)) == 80


def test_a_band_has_one_closed_shape_for_each_stretch_of_known_values() -> None:
    figure = axes.go.Figure()

    marks.add_band(figure, [1, 2, 3, 4], [1, None, 1, 1], [2, 2, 2, 2], "#2A6BD4", 0.2, name="band")

    assert list(figure.data[0].x) == [1, 1, None, 3, 4, 4, 3, None]


@pytest.mark.parametrize(
    ("ends", "at_most", "step"), [((0, 184_000), 10, 20_000), ((8, 808), 4, 250), ((0, 1), 4, 0.5), ((4, 2), 5, 0.5)]
)
def test_ticks_of_a_linear_axis_are_round_and_not_too_many(
    ends: tuple[float, float], at_most: int, step: float
) -> None:
    assert axes.tick_step(ends, at_most) == pytest.approx(step)
