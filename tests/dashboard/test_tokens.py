"""Colours: enough contrast, the same in style sheet and figures, and light to dark without ambiguity."""

import re
from pathlib import Path

import pytest

import noisescale_dashboard
from noisescale_dashboard.figures.parts.theme import DARK, LIGHT, Palette, dark_of_light, translucent

ASSETS = Path(noisescale_dashboard.__file__).parent / "assets"
CSS = (ASSETS / "10-base.css").read_text()
TEXT_ON = (
    [(text, ground) for text in ("t1", "t2", "t3") for ground in ("panel", "canvas")]
    + [(f"{role}-t", f"{role}-bg") for role in ("noise", "batch", "rec", "bad")]
    + [(f"{role}-t", "panel") for role in ("noise", "batch", "rec", "bad")]
    + [("warn", "warn-bg"), ("t1", "warn-bg"), ("t2", "mute-bg"), ("t1", "raised"), ("t3", "sunken")]
)
MARKS = ("noise", "batch", "rec", "ok", "bad", "warn", "ctl", "focus")


def tokens(theme: str) -> dict[str, str]:
    block = re.search(rf"\[data-mantine-color-scheme={theme}\]\{{\s*(--canvas.*?)\}}", CSS, re.S)
    assert block
    return dict(re.findall(r"--([a-z0-9-]+):(#[0-9A-F]{6})", block[1]))


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT_ON)
def test_text_has_a_contrast_of_at_least_four_and_a_half(theme: str, text: str, ground: str) -> None:
    colors = tokens(theme)

    assert contrast(colors[text], colors[ground]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("mark", MARKS)
def test_marks_have_a_contrast_of_at_least_three(theme: str, mark: str) -> None:
    colors = tokens(theme)

    assert contrast(colors[mark], colors["panel"]) >= 3


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_figures_and_style_sheet_use_the_same_colours(theme: str, palette: Palette) -> None:
    colors = tokens(theme)

    assert (palette.panel, palette.raised, palette.text_1, palette.text_2, palette.text_3) == tuple(
        colors[name] for name in ("panel", "raised", "t1", "t2", "t3")
    )
    assert (palette.noise, palette.batch, palette.recommended, palette.grid, palette.line_strong) == tuple(
        colors[name] for name in ("noise", "batch", "rec", "grid", "line2")
    )


def test_each_light_colour_has_one_dark_one_and_back() -> None:
    pairs = dark_of_light()

    assert len(set(pairs.values())) == len(pairs)
    for name in Palette.__slots__:
        light, dark = getattr(LIGHT, name), getattr(DARK, name)
        for one, other in [(light, dark)] if isinstance(light, str) else zip(light, dark, strict=True):
            assert pairs[one] == other


def test_sequential_colours_move_away_from_the_ground() -> None:
    light = [luminance(color) for color in LIGHT.sequential]
    dark = [luminance(color) for color in DARK.sequential]

    assert light == sorted(light, reverse=True)
    assert dark == sorted(dark)


def test_translucent_colours_are_written_as_the_browser_looks_them_up() -> None:
    assert translucent("#2A6BD4", 0.2) == "rgba(42,107,212,0.2)"
