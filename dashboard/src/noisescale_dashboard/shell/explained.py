"""Words that are explained where they stand: a dotted line below, a tooltip of one sentence, a link to Learn."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dash import html
from dash.development.base_component import Component

from noisescale_dashboard.shell.still import Still
from noisescale_dashboard.words.term import anchor
from noisescale_dashboard.words.terms import TERMS

Child = Component | str
Children = Child | Sequence[Child] | None

WORDS: Final = {
    "noise scales?(?: B_noise)?": "noise_scale",
    "critical batch(?:es)?|B_crit": "critical_batch",
    "example efficiency": "example_efficiency",
    "step efficiency": "step_efficiency",
    "efficienc(?:y|ies)": "example_efficiency",
    "not resolved": "unresolved",
    "resolved": "resolved",
    "tr Σ": "trace_cov",
    r"\|G\|²": "grad_sq_norm",
    "κ": "kappa",
    "regret": "regret",
    "redundant": "redundant",
    "tuned runs?": "tuned_run",
    "limit binds": "binding_limit",
    "schedules?": "schedule",
    "sweeps?": "sweep",
    "branch(?:es)?": "branch",
    "margin": "margin",
    "95 % interval": "interval",
    "learning rates?": "learning_rate",
    "E_min|S_min": "e_min_s_min",
    "targets?": "target",
    "rms factor": "rms_factor",
    "E_min and S_min": "e_min_s_min",
}
"""How a term is written in a title, a subtitle or a label → its key; the first that fits counts."""
FOUND: Final = re.compile("|".join(f"(?<![\\w_])({words})(?![\\w_])" for words in WORDS), re.IGNORECASE)
KEYS: Final = tuple(WORDS.values())


def aria(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with a hyphen, as keyword arguments of a component."""
    return attributes


def listed(children: Children) -> list[Child]:
    """Children as a flat list: nested lists break React."""
    if children is None:
        return []
    return [children] if isinstance(children, Component | str) else list(children)


def term(key: str, words: str | None = None) -> html.A:
    """A word of the page with its meaning in a tooltip, and a link to where it is explained.

    The tooltip is drawn by CSS for pointer and keyboard; who hears the page is read `tips()`.

    Args:
        key: Of `words/terms.py`.
        words: What is shown; None: the term itself.
    """
    found = TERMS[key]
    attributes = {"data-tip": found.sentence, "aria-describedby": tip_id(key), "data-go": "page"}
    return html.A(words or found.word, href=f"/learn#{anchor(key)}", className="term", **aria(attributes))


def tip_id(key: str) -> str:
    """Id of the element that holds a term's sentence."""
    return f"tip-{anchor(key)}"


def tips() -> html.Div:
    """The sentence of every term, once for all pages, where a screen reader looks it up."""
    return html.Div(Still([html.Span(found.sentence, id=tip_id(key)) for key, found in TERMS.items()]), hidden=True)


def explained(children: Children) -> list[Child]:
    """Children with each term in their text explained once, where it is first met."""
    seen: set[str] = set()
    return [part for child in listed(children) for part in _parts(child, seen)]


def _parts(child: Child, seen: set[str]) -> Iterator[Child]:
    if not isinstance(child, str):
        yield child
        return
    end = 0
    for match in FOUND.finditer(child):
        key = KEYS[(match.lastindex or 1) - 1]
        if key in seen:
            continue
        seen.add(key)
        if match.start() > end:
            yield child[end : match.start()]
        yield term(key, match.group())
        end = match.end()
    if child[end:]:
        yield child[end:]
