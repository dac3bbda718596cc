"""A series in one line: the height follows the value, and what is not known leaves a gap."""

import math
import re
from xml.etree import ElementTree

import pytest

from noisescale.shown import HEIGHT, WIDTH, blocks, drawing


def test_the_least_value_is_the_lowest_block_and_the_largest_the_highest():
    assert blocks([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) == "▁▂▃▄▅▆▇█"


def test_a_logarithmic_scale_gives_each_decade_the_same_height():
    assert blocks([1.0, 10.0, 100.0], is_log=True) == "▁▅█"


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf])
def test_what_is_not_known_is_a_gap(unknown):
    assert blocks([1.0, unknown, 2.0]) == "▁ █"


def test_what_has_no_logarithm_is_a_gap_on_that_scale_alone():
    assert blocks([0.0, 1.0, 10.0], is_log=True) == " ▁█"
    assert blocks([-1.0, 0.0]) == "▁█"


def test_a_constant_series_lies_half_way():
    assert blocks([3.0, 3.0]) == "▅▅"


def test_nothing_known_draws_nothing():
    assert blocks([]) == ""
    assert blocks([None, None]) == "  "
    assert drawing([None, 3.0], "x") == ""


def test_a_drawing_has_a_line_for_each_piece_inside_its_box_and_takes_the_colour_of_the_text():
    svg = drawing([1.0, 10.0, None, 100.0, 10.0], "noise scale")

    root = ElementTree.fromstring(svg)
    points = [[float(at) for at in re.split("[ ,]", line.attrib["points"])] for line in root]
    assert root.attrib["stroke"] == "currentColor"
    assert root.attrib["aria-label"] == "noise scale"
    assert [len(piece) // 2 for piece in points] == [2, 2]
    assert points[0][1] > points[0][3] > points[1][1]
    assert all(0 < x < WIDTH for piece in points for x in piece[::2])
    assert all(0 < y < HEIGHT for piece in points for y in piece[1::2])
