"""Every term of the pages, once, by the name that code gives it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.words.term import Term
from noisescale_dashboard.words.terms_of_a_run import MEASURED
from noisescale_dashboard.words.terms_of_records import RECORDED
from noisescale_dashboard.words.terms_of_several_runs import COMPARED

TERMS: Final[Mapping[str, Term]] = MappingProxyType({**MEASURED, **COMPARED, **RECORDED})
"""The order is that of the page."""
TERM_OF: Final[Mapping[str, str]] = MappingProxyType({name: key for key, term in TERMS.items() for name in term.named})
"""Word of `docs/glossary.md` → the term that explains it on the pages."""
