"""The glossary's table of the words that pages use, written from `terms.py`.

Run it with the glossary's path: `python -m noisescale_dashboard.words.glossary docs/glossary.md`.
"""

import sys
from pathlib import Path
from typing import Final

from noisescale_dashboard.words.term import Term, anchor
from noisescale_dashboard.words.terms import TERMS

TITLE: Final = "## Words of the pages"
"""The table is all that follows it."""
INTRODUCTION: Final = (
    "As `/learn` explains them, and as their tooltips do; written from `words/terms.py` of the dashboard by\n"
    "`python -m noisescale_dashboard.words.glossary docs/glossary.md`, never by hand."
)


def section() -> str:
    """The section with a row a term: its word, its anchor on the page Learn, its meaning, and its words above."""
    rows = [_row(key, term) for key, term in TERMS.items()]
    return "\n".join([TITLE, "", INTRODUCTION, "", "| word | where | means | above |", "|---|---|---|---|", *rows, ""])


def _row(key: str, term: Term) -> str:
    meaning = _cell(f"{term.sentence} {term.more}".strip())
    return (
        f"| {_cell(term.word)} | `/learn#{anchor(key)}` | {meaning} | {', '.join(f'`{one}`' for one in term.named)} |"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def rewritten(document: str) -> str:
    """The document with this section in place of the one it ends in."""
    return document.partition(TITLE)[0].rstrip() + "\n\n" + section()


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(rewritten(path.read_text()))
