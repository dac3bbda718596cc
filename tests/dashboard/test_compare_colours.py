"""Colours of what is compared: the same in style sheet and figures, never those of the roles."""

import re
from pathlib import Path

import pytest

import noisescale_dashboard
from noisescale_dashboard.figures.parts.theme import (
    DARK,
    LIGHT,
    OTHER,
    RUN_COLORS,
    UNITS,
    Palette,
    color_of_slot,
    colors_of_units,
)

ASSETS = Path(noisescale_dashboard.__file__).parent / "assets"
CSS = (ASSETS / "54-compare.css").read_text()


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_categories_are_the_same_in_style_sheet_and_figures(theme: str, palette: Palette) -> None:
    block = re.search(rf"\[data-mantine-color-scheme={theme}\]\{{(--cat1.*?)\}}", CSS)

    assert block
    assert tuple(re.findall(r"--cat\d:(#[0-9A-F]{6})", block[1])) == palette.categories


def test_the_swatch_of_a_slot_has_the_colour_of_its_line() -> None:
    for slot, color in enumerate(RUN_COLORS):
        rule = re.search(rf"\.sw\.run{slot + 1}\{{background:var\(--(cat(\d)|t1)\)\}}", CSS)
        assert rule, slot
        assert (LIGHT.categories[int(rule[2]) - 1] if rule[2] else LIGHT.text_1) == color


def test_a_run_never_has_the_colour_of_a_role() -> None:
    assert not {LIGHT.noise, LIGHT.batch, LIGHT.recommended} & set(RUN_COLORS)
    assert color_of_slot(None) == OTHER
    slots = int(re.search(r"SLOTS = (\d+)", (ASSETS / "modules" / "address" / "slots.js").read_text())[1])  # type: ignore[index]
    assert slots == len(RUN_COLORS) == len(set(RUN_COLORS))


def test_a_unit_keeps_its_colour_whatever_stands_beside_it() -> None:
    alone, beside = colors_of_units(["tokens"]), colors_of_units(["images", "sequences", "tokens"])

    assert alone["tokens"] == beside["tokens"] == LIGHT.categories[UNITS.index("tokens")]
    assert len(set(beside.values())) == 3
    assert OTHER in colors_of_units([f"unit {number}" for number in range(9)]).values()
