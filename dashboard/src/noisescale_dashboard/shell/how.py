"""What one explanation of a card holds, and the section of Learn that it belongs to."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.words.terms import TERM_OF

MCCANDLISH = "McCandlish et al. 2018, arXiv:1812.06162"
SECTION_OF_PAGE: Final = MappingProxyType(
    {
        "calibration.md": "sweeps-and-branches",
        "cost.md": "small-and-large-batches",
        "dashboard.md": "over-training",
        "deciding.md": "how-sure",
        "delivery.md": "data",
        "estimators.md": "measured",
        "laws.md": "across-tasks",
        "learning_rate.md": "which-learning-rate",
        "measuring.md": "measured",
        "planner.md": "small-and-large-batches",
        "policies.md": "how-sure",
        "recommendations.md": "small-and-large-batches",
        "reproduce.md": "across-tasks",
        "rest.md": "small-and-large-batches",
        "sweeps.md": "sweeps-and-branches",
        "theory.md": "small-and-large-batches",
        "wire.md": "data",
    }
)
"""Page of `docs/` → the section of Learn that says in plain words what it is about: a browser cannot open the page."""


@dataclass(frozen=True, slots=True)
class How:
    """One explanation.

    Attributes:
        text: One to three sentences.
        page: Where `docs/` says it in full.
        words: The words of the glossary that it rests on.
        source: Paper with section or equation; empty where the product alone defines it.
    """

    text: str
    page: str
    words: tuple[str, ...]
    source: str = ""

    @property
    def section(self) -> str:
        """Anchor of the section of Learn that it belongs to."""
        return SECTION_OF_PAGE[self.page]

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of Learn that explain its words, by their keys."""
        return tuple(dict.fromkeys(TERM_OF[word] for word in self.words))
