"""The report as one HTML document: style, font and drawings are inside, nothing is loaded and nothing runs."""

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dash import html

from noisescale_dashboard.report.first_page import first_page
from noisescale_dashboard.report.markup import Markup, cut, text, to_html
from noisescale_dashboard.report.reading import Reported
from noisescale_dashboard.report.second_page import second_page
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.words.number_format import count

_PACKAGE = Path(__file__).parents[1]
STYLE = Path(__file__).with_name("report.css")
FONT = _PACKAGE / "assets" / "fonts" / "inter.woff2"
MARK = _PACKAGE / "assets" / "mark.svg"
MAX_ADDRESS = 116
"""Characters of a line."""
GENERATOR = "noisescale report"
"""How a program tells a report from any other page."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a report's numbers come from.

    Attributes:
        address: Of the same report on the server; None where that server is gone by the time anybody reads this.
        words: In place of it, what was read.
        at: When.
    """

    address: str | None
    words: str
    at: datetime


def document(found: Reported, origin: Origin) -> str:
    """The whole file, in UTF-8 as it stands."""
    first = [_head(found, "Recommendation report", origin.at), *first_page(found), _foot(found, 1, _source(origin))]
    second = [_head(found, "Data", origin.at), *second_page(found), _foot(found, 2, None)]
    body = html.Main([html.Article(parts, className="sheet") for parts in (first, second)])
    return page(f"{found.run.name} – noisescale report", body)


def page(title: str, body: html.Main, style: str = "") -> str:
    """A document around its body.

    Args:
        title: As it came; it is escaped here.
        body: What it shows.
        style: Rules behind those of all reports.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{GENERATOR} {_version()}">\n'
        '<meta name="color-scheme" content="light">\n'
        f"<title>{text(title)}</title>\n"
        f"<style>{_font()}{STYLE.read_text()}{style}</style>\n</head>\n<body>{to_html(body)}</body>\n</html>\n"
    )


def _head(found: Reported, title: str, moment: datetime) -> html.Header:
    run, at = found.run, moment.astimezone(UTC)
    told = [f"{at.day} {at:%b %Y, %H:%M} UTC", f"run {run.id[:8]}"]
    if run.last_step is not None:
        told.append(f"step {count(run.last_step)}")
    brand = html.Span([Markup(MARK.read_text().strip()), html.B("noisescale"), html.Span(title)], className="brand")
    return html.Header([brand, html.Span(" · ".join(told))])


def _source(origin: Origin) -> Child:
    """A link to the same on the server; on paper a line of it, since what was asked is said in words."""
    if origin.address is None:
        return html.Span(origin.words)
    return html.A(cut(origin.address, MAX_ADDRESS), href=origin.address)


def _foot(found: Reported, page: int, source: Child | None) -> html.Footer:
    by = html.Span(f"noisescale {_version()} · estimator {found.run.estimator or 'unknown'}")
    return html.Footer([by, html.Span(f"page {page} of 2"), *([source] if source is not None else [])])


def _version() -> str:
    return version("noisescale-dashboard")


def _font() -> str:
    data = base64.b64encode(FONT.read_bytes()).decode()
    return (
        "@font-face{font-family:Inter;font-weight:400 700;font-display:block;"
        f"src:url(data:font/woff2;base64,{data}) format('woff2')}}\n"
    )
