"""The figures as one HTML file, drawn by the dashboard where it is installed: no figure is drawn twice."""

from importlib.metadata import entry_points
from pathlib import Path

from noisescale_lab.reproduce.claim.judged.findings import Findings
from noisescale_lab.reproduce.claim.report.files import summary

GROUP, NAME = "noisescale.reports", "reproduce"
"""Of the entry point: a function from the summary and the tables of a terminal to a document."""

HOW = "in a checkout of noisescale, pip install ./dashboard, and the same command draws them as report.html"


def write_report(folder: Path, found: Findings, text: str) -> Path | None:
    """The file; None where no dashboard is installed.

    Args:
        folder: Of the results.
        found: What is drawn.
        text: The tables, which go in as they are.
    """
    for entry_point in entry_points(group=GROUP, name=NAME):
        document: str = entry_point.load()(summary(found), text)
        path = folder / "report.html"
        path.write_text(document, encoding="utf-8")
        return path
    return None
