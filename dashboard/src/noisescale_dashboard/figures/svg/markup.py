"""SVG elements as text: names and numbers are ours, every other text is escaped here and nowhere else."""

import html
import re
from collections.abc import Iterable

# control characters, and those that turn the direction of writing: a name may not rearrange what stands around it
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
_MARKS = re.compile(r"(</?b>|<br>)")


def element(name: str, *children: str, **attributes: str | float | None) -> str:
    """`<name …>children</name>`; an underscore in an attribute's name is a hyphen, None leaves it out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(children)
    return f"<{name}{given}>{inside}</{name}>" if inside else f"<{name}{given}/>"


def literal(words: str) -> str:
    """`words` as a document shows them and nothing else; characters that cannot be seen are shown as such."""
    return html.escape(_UNSEEN.sub("\ufffd", words))


def _text(value: str | float) -> str:
    return literal(value) if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """Pixels with one decimal at most: 3.04 → "3"."""
    rounded = round(value, 1)
    return str(int(rounded)) if rounded == int(rounded) else str(rounded)


def path(points: Iterable[tuple[float, float]], *, is_closed: bool = False) -> str:
    """The data of a path through these pixels."""
    drawn = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return f"M{drawn}{'Z' if is_closed else ''}"


def lines(words: str) -> list[str]:
    """The lines of plotly's text as SVG: `<b>` becomes a bold span, entities characters, and all else is literal.

    What looks like any other tag is shown as it is written.
    """
    found, is_bold = [""], False
    for part in _MARKS.split(words):
        if part == "<br>":
            found.append("")
        elif part in ("<b>", "</b>"):
            is_bold = part == "<b>"
        elif part:
            shown = literal(html.unescape(part))
            found[-1] += f'<tspan font-weight="600">{shown}</tspan>' if is_bold else shown
    return found
