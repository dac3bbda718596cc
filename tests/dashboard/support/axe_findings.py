"""What axe finds wrong with a page for those who cannot see it, or not well."""

from typing import Any

from axe_core_python.async_playwright import Axe
from playwright.async_api import Page

DRAWINGS: dict[str, object] = {"exclude": [[".main-svg"]]}
"""They are described by their figure; axe would only spend seconds on thousands of paths."""


async def serious_findings(page: Page, context: dict[str, object] | None = None, **rules: object) -> list[Any]:
    """The serious ones, each with the elements that it is about.

    Args:
        page: What is looked at.
        context: What of it, as axe takes it.
        rules: Which of axe's rules; all, where none are said.
    """
    # a list of all that is right, too, takes it twice as long
    options = {"resultTypes": ["violations"], **rules}
    found = (await Axe().run(page, context=context, options=options))["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    return [(v["id"], [node["html"][:160] for node in v["nodes"][:4]]) for v in serious]
