"""Every page with a thousand runs of six teams and the demo's data, at four widths and in both themes.

What is cut says so, no number is cut, no two labels overlap, no card is blank, no page scrolls sideways, axe is quiet.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, Page

import thousand_runs
from axe_findings import DRAWINGS, serious_findings
from card_numbers import MOST_NUMBERS, MOST_PIXELS, shown_card
from noisescale_dashboard.app import mount
from page_geometry import complaints
from served_app import TOKEN, served_app
from served_demo import LONGEST_WAIT, load_demo
from thousand_runs import Made

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.processes]

WIDTHS = {1440: (1440, 1920), 390: (390, 700)}
"""A page is loaded at the first width; at the second it has the same parts."""

PAGES = {
    "overview": "/",
    "runs": "/runs",
    "runs with an open sweep": "/runs?open=s:{sweep}",
    "runs by task": "/runs?group=task&open=g:cifar10",
    "a run": "/runs/{running}",
    "a run that has diverged": "/runs/{nan}",
    "a run that is not resolved": "/runs/{unresolved}",
    "a run of two processes": "/runs/{resumed}",
    "a silent run": "/runs/{silent}",
    "a run that has begun": "/runs/{early}",
    "a run on one device": "/runs/{one device}",
    "an imported run": "/runs/{imported}",
    "a run without measurements": "/runs/{one_backward}",
    "a language model": "/runs/{language model}",
    "a report": "/runs/{running}/report",
    "compare": "/compare?runs={several}",
    "configurations": "/compare?tab=config&runs={several}",
    "across tasks": "/compare?tab=tasks",
    "sweeps": "/sweeps",
    "published sweeps": "/sweeps?tab=published",
    "a sweep": "/sweeps/{sweep}",
    "a branch": "/sweeps/{branch}",
    "planner": "/planner?run={running}",
    "a first batch": "/planner/first",
    "cost": "/cost",
    "record": "/record",
    "a reproduction": "/reproduce/{reproduction}",
    "learn": "/learn",
    "settings": "/settings",
}
OF_PAPER = "a report"


@dataclass(frozen=True, slots=True)
class Team:
    """The server, its runs, and ids that are part of addresses by what they are of."""

    url: str
    made: tuple[Made, ...]
    ids: Mapping[str, str]


@pytest.fixture(scope="module")
def team(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    database = new_database()
    made = tuple(thousand_runs.fill(database))
    with (
        served_app(database, extend=mount, **thousand_runs.SETTINGS) as url,
        httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
    ):
        load_demo(url, tmp_path_factory.mktemp("state"))
        yield Team(url, made, ids_of(made, http))


def ids_of(made: tuple[Made, ...], http: httpx.Client) -> dict[str, str]:
    sweeps = http.get("/sweeps", params={"limit": 100}).json()["sweeps"]
    kinds = {kind: kind for kind in ("nan", "unresolved", "resumed", "early", "imported", "one_backward")}
    found = {name: run_of(made, kind) for name, kind in kinds.items()} | {
        "running": run_of(made, "plain", task="dota-mini", state="running"),
        "silent": run_of(made, "plain", state="silent"),
        "one device": run_of(made, "plain", task="cifar10", state="finished"),
        "language model": run_of(made, "plain", task="fineweb-edu"),
        "sweep": next(one["id"] for one in sweeps if one["name"].startswith("critical batch of cifar10")),
        "branch": next(one["id"] for one in sweeps if one["kind"] == "branch"),
        "reproduction": http.get("/reproductions").json()["reproductions"][0]["id"],
    }
    decided = {"raise": "increase", "lower": "decrease", "keep": "keep", "probably": "probably_increase"}
    for word, decision in decided.items():
        listed = http.get("/runs", params={"decision": decision, "trials": "hide", "limit": 1}).json()["runs"]
        found[word] = listed[0]["id"]
    found |= {"rate off": rate_off(http, "probably_decrease"), "rate first": rate_off(http, "keep_for_now")}
    several = [run_of(made, kind, task="in21k") for kind in ("plain", "unresolved", "resumed", "nan")]
    return found | {"several": ",".join(several)}


def rate_off(http: httpx.Client, decision: str) -> str:
    """The id of a run of the demo with this decision whose learning rate is too low or too high, once it is decided."""
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        listed = http.get("/runs", params={"project": "demo", "decision": decision, "limit": 100}).json()["runs"]
        for run in listed:
            if http.get(f"/runs/{run['id']}/learning-rate").json()["verdict"] in ("too_low", "too_high"):
                return str(run["id"])
        time.sleep(1.0)
    raise AssertionError(f"no run of the demo with {decision} and a rate that is off")


def run_of(made: tuple[Made, ...], kind: str, *, task: str | None = None, state: str | None = None) -> str:
    """The id of the first run that is like this and no trial."""
    fits = (
        one
        for one in made
        if one.trial_of is None and one.kind == kind and task in (None, one.family.task) and state in (None, one.state)
    )
    return str(next(fits).id)


@pytest.fixture(scope="module", params=WIDTHS, ids=lambda width: f"{width} px")
async def reader(request: pytest.FixtureRequest, browser: Browser, team: Team) -> AsyncIterator[BrowserContext]:
    """A reader who is logged in and keeps what was loaded; light where it is wide, dark on a phone."""
    width = int(request.param)
    theme = "light" if width > 1000 else "dark"
    context = await browser.new_context(
        viewport={"width": width, "height": 1000}, color_scheme=theme, reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.goto(f"{team.url}/login?token={TOKEN}&next=/settings")
    await page.close()
    yield context
    await context.close()


@pytest.fixture
async def page(reader: BrowserContext) -> AsyncIterator[Page]:
    """A page of the reader, in the theme that the system asks for."""
    opened = await reader.new_page()
    yield opened
    await opened.evaluate("localStorage.clear()")
    await opened.close()


FITS = """() => Array.from(document.querySelectorAll("#content .js-plotly-plot .main-svg")).every((svg) =>
  svg.getBoundingClientRect().width <= svg.closest(".js-plotly-plot").getBoundingClientRect().width + 1)"""


async def settled(page: Page) -> None:
    """Wait until all is asked for, answered, and drawn at the width of the page."""
    await page.wait_for_load_state("networkidle", timeout=60_000)
    await page.wait_for_selector("#content [id$=-body].loading", state="detached", timeout=60_000)
    await page.wait_for_load_state("networkidle", timeout=60_000)
    await page.wait_for_function(FITS, timeout=20_000)
    await page.wait_for_timeout(300)


async def lasting_complaints(page: Page) -> Sequence[str]:
    """What is wrong and stays so: a figure that is just being drawn at another width is not looked at."""
    found = await complaints(page)
    for _ in range(20):
        if not found:
            break
        await page.wait_for_timeout(500)
        found = await complaints(page)
    return found


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_of_a_thousand_runs_is_whole(team: Team, page: Page, name: str) -> None:
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    size = page.viewport_size
    assert size is not None
    found: dict[str, object] = {}

    await page.goto(team.url + PAGES[name].format_map(team.ids))
    for width in WIDTHS[size["width"]]:
        if width != size["width"]:
            await page.set_viewport_size({"width": width, "height": 1000})
            if name != OF_PAPER:
                await page.locator("#theme-toggle").click()
        await settled(page)
        found[f"{width} px"] = await lasting_complaints(page)
    if size["width"] > 1000:
        # narrow pages are asked in test_pages_in_a_browser.py
        found["axe"] = await serious_findings(page, DRAWINGS)

    assert {where: wrong for where, wrong in found.items() if wrong} == {}
    assert said == []


CARDS = (
    "raise", "lower", "keep", "probably", "unresolved", "nan", "silent", "early", "one device", "imported", "resumed",
    "one_backward", "language model", "running", "rate off", "rate first",
)  # fmt: skip
"""Kinds of runs; `running` and `language model` have a price."""


async def test_the_card_of_each_kind_of_run_is_at_most_420_pixels_high_and_says_at_most_14_numbers(
    team: Team, browser: Browser
) -> None:
    context = await browser.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
    page = await context.new_page()
    await page.goto(f"{team.url}/login?token={TOKEN}&next=/settings")

    seen = {kind: await shown_card(page, f"{team.url}/runs/{team.ids[kind]}") for kind in CARDS}

    await context.close()
    print("card, height in pixels and numbers:", seen)
    assert {kind: one for kind, one in seen.items() if one[0] > MOST_PIXELS or one[1] > MOST_NUMBERS} == {}
