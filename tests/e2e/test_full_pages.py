"""Every page of the dashboard with the demo's data: full, without an error, and without anybody having trained."""

import httpx
import pytest
from playwright.async_api import Browser

from served_app import TOKEN

pytestmark = [pytest.mark.processes, pytest.mark.browser, pytest.mark.slow]

PAGES = {
    "/": ".js-plotly-plot, svg",
    "/runs?project=demo": ".ag-row",
    "/runs/{run}": ".js-plotly-plot .scatterlayer .trace",
    "/sweeps?project=demo": ".ag-row, table tbody tr",
    "/sweeps/{sweep}": ".js-plotly-plot .scatterlayer .trace",
    "/sweeps/{branch}": "table tbody tr, .js-plotly-plot",
    "/compare": ".js-plotly-plot .scatterlayer .trace",
    "/planner?run={run}": ".js-plotly-plot, svg",
    "/reproduce": "a[href^='/reproduce/'], .js-plotly-plot",
    "/learn": "svg",
}
"""Address, and what is there once it is full."""


@pytest.fixture(scope="module")
def names(demo_url: str) -> dict[str, str]:
    """Ids that are part of addresses."""
    with httpx.Client(base_url=f"{demo_url}/api/v1", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        run = http.get("/runs", params={"q": "characters-b128"}).json()["runs"][0]["id"]
        sweeps = {
            kind: http.get("/sweeps", params={"project": "demo", "kind": kind}).json()["sweeps"][-1]["id"]
            for kind in ("sweep", "branch")
        }
    return {"run": run, "sweep": sweeps["sweep"], "branch": sweeps["branch"]}


@pytest.mark.parametrize("address", PAGES)
async def test_a_page_is_full(demo_url: str, names: dict[str, str], browser: Browser, address: str) -> None:
    context = await browser.new_context(viewport={"width": 1440, "height": 1000})
    page = await context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    await page.goto(f"{demo_url}/login?token={TOKEN}&next=/learn")

    await page.goto(demo_url + address.format(**names))
    await page.wait_for_selector(PAGES[address], state="attached", timeout=60_000)

    empty = [one for one in await page.locator(".empty").all() if await one.is_visible()]
    said = [await one.inner_text() for one in empty]
    await context.close()
    assert (said, complaints) == ([], [])
