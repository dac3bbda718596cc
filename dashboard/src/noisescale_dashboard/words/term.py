"""What a term of the pages is: a word, a sentence for its tooltip, and the rest for the page that explains it."""

from dataclasses import dataclass

MCCANDLISH = "McCandlish et al. 2018, arXiv:1812.06162"


@dataclass(frozen=True, slots=True)
class Term:
    """One term.

    Attributes:
        word: As the pages write it.
        sentence: What it is, for a person who has never read the papers.
        more: How it is computed or used; empty where the sentence says it all.
        source: Paper with section or equation; empty where the product alone defines it.
        named: What `docs/glossary.md` calls it; several where the pages have one word for them.
    """

    word: str
    sentence: str
    more: str = ""
    source: str = ""
    named: tuple[str, ...] = ()


def anchor(key: str) -> str:
    """Where the page Learn explains the term of this key: the part of the address after "#"."""
    return key.replace("_", "-")
