"""The address of a run's report: what a reader values and has stands in it, by the API's words."""

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from dash import html

from noisescale_dashboard.api.question_fields import BALANCED
from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.run import limits as plan_limits
from noisescale_dashboard.shell.parts import icon

LAST_PART = "report"
PREFERENCE = "pref"
LINKS = ("run-report", "run-advice-report")
"""Ids of the links on a run's page; the recommendation's callback gives them their addresses."""


def link(link_id: str) -> html.A:
    """A link to the report, before its address is known; it opens beside the page, which goes on living."""
    return html.A([icon("print", "sm"), "Report"], id=link_id, className="btn", href="", target="_blank")


def address_of(run_id: str, view: Mapping[str, Any]) -> str:
    """The report on a run at the preference and inside the limits of its page's view."""
    said = {PREFERENCE: view["pref"]} if view["pref"] != BALANCED else {}
    query = urlencode({**said, **plan_limits.asked(view)})
    return f"/runs/{run_id}/{LAST_PART}" + (f"?{query}" if query else "")


def asked_in(query: list[tuple[str, str]]) -> tuple[float, dict[str, Any]]:
    """Preference and everything else that an address asks; the API says which of it there is.

    Raises:
        ApiProblem: For a preference that is no number from 0 to 1.
    """
    given: dict[str, list[str]] = {}
    for name, value in query:
        given.setdefault(name, []).append(value)
    said = given.pop(PREFERENCE, [str(BALANCED)])[-1]
    try:
        preference = float(said)
    except ValueError:
        preference = math.nan
    if not 0 <= preference <= 1:
        detail = f"{PREFERENCE} must be a number from 0 (fewest examples) to 1 (fewest steps), got {said[:80]!r}"
        raise ApiProblem(f"GET …/{LAST_PART}", 422, "Input cannot be accepted", detail)
    return preference, {name: values if len(values) > 1 else values[0] for name, values in given.items()}
