"""Names, tags and configs as hostile as people can make them are text on every page of a real browser."""

import asyncio
import csv
import io
import itertools
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.async_api import Browser, Page

import hostile_texts
from compared_tasks import stored_run
from factories import make_batch, make_groups, make_measurements, make_run
from noisescale_dashboard.app import mount
from served_app import TOKEN, served_app

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WATCH = """
window.complaints = [];
document.addEventListener("securitypolicyviolation", (event) => window.complaints.push(event.violatedDirective));
"""


class Visit:
    """A page, and what it did that no page of ours does."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.dialogs: list[str] = []
        self.strangers: list[str] = []
        page.on("dialog", self._dismiss)
        page.on("request", self._look)

    async def _dismiss(self, dialog: object) -> None:
        self.dialogs.append(dialog.message)  # type: ignore[attr-defined]
        await dialog.dismiss()  # type: ignore[attr-defined]

    def _look(self, request: object) -> None:
        url = request.url  # type: ignore[attr-defined]
        if not url.startswith((self.address, "data:", "blob:")):
            self.strangers.append(url)

    async def text(self) -> str:
        """What a reader sees, what is typed into fields among it."""
        fields = await self.page.evaluate("[...document.querySelectorAll('input, textarea')].map(one => one.value)")
        return "\n".join([await self.page.inner_text("body"), *fields])

    async def deeds(self) -> tuple[list[str], list[str], list[str]]:
        """Dialogs, requests beyond the server, reports of the content security policy."""
        complaints = await self.page.evaluate("window.complaints")
        return self.dialogs, self.strangers, complaints


@pytest.fixture(scope="module")
def address(new_database: Callable[[], str]) -> Iterator[str]:
    with served_app(new_database(), extend=mount) as url:
        yield url


@pytest.fixture
async def visit(browser: Browser, address: str) -> AsyncIterator[Visit]:
    context = await browser.new_context(
        viewport={"width": 1440, "height": 1000}, extra_http_headers={"Authorization": f"Bearer {TOKEN}"}
    )
    page = await context.new_page()
    await page.add_init_script(WATCH)
    yield Visit(page, address)
    await context.close()


@pytest.fixture(scope="module")
async def api(address: str) -> AsyncIterator[httpx.AsyncClient]:
    """The API of the same server."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
        yield client


AT_ONCE = 6
"""Texts that one page of a run shows: as its name, task, tag, unit, example and device, and in its config."""


@pytest.fixture(scope="module")
async def runs(api: httpx.AsyncClient) -> dict[str, str]:
    """A run for each text, by its name; the five texts behind it stand in its other fields."""
    found = {}
    for place, text in enumerate(hostile_texts.ALL):
        others = [hostile_texts.ALL[(place + k) % len(hostile_texts.ALL)] for k in range(AT_ONCE)]
        described = {
            "name": text,
            "tags": [others[2][:64], others[4][:64]],  # the word for an example stands in few sentences
            "config": {others[0]: others[1], others[2]: [others[3], {others[4]: others[5]}]},
            "unit": others[3],
            "example": others[4],
            "device": others[5],
        }
        found[text] = await stored_run(api, project="hostile", task=others[1], run=described, num_steps=60)
    return found


def test_there_are_sixty_of_them() -> None:
    assert len(set(hostile_texts.ALL)) >= 60


async def whole_table(page: Page) -> str:
    """What the table of runs shows from its first row to its last, which it draws only as they come into sight."""
    seen = ""
    await page.mouse.move(700, 600)
    await page.mouse.wheel(0, -20_000)
    for _ in range(40):
        await page.wait_for_timeout(150)
        seen += await page.inner_text(".ag-root")
        # of a long name the middle is cut; all of it is in its tooltip
        seen += await page.evaluate("[...document.querySelectorAll('.ag-root [title]')].map(one => one.title).join()")
        await page.mouse.wheel(0, 400)
    return seen


async def test_the_table_of_runs_shows_each_as_text(visit: Visit, runs: dict[str, str]) -> None:
    await visit.page.goto(f"{visit.address}/runs")
    await visit.page.wait_for_selector(".ag-row", timeout=60_000)
    seen = await whole_table(visit.page)
    await visit.page.click("#runs-next")
    await visit.page.wait_for_function("() => !document.querySelector('#runs-range').innerText.startsWith('1 ')")
    seen += await whole_table(visit.page)

    missing = [text for text in runs if squeezed(text) not in squeezed(seen)]
    assert missing == []
    assert await visit.deeds() == ([], [], [])


async def test_the_pages_of_runs_show_each_as_text(visit: Visit, runs: dict[str, str]) -> None:
    for place in range(0, len(hostile_texts.ALL), AT_ONCE):
        shown = hostile_texts.ALL[place : place + AT_ONCE]
        await visit.page.goto(f"{visit.address}/runs/{runs[shown[0]]}")
        await visit.page.wait_for_selector("#run-facts .fact", timeout=60_000)
        await visit.page.wait_for_selector("#run-noise .scatterlayer .trace", state="attached", timeout=60_000)
        seen = squeezed(await visit.text())

        assert [text for text in shown if squeezed(text) not in seen] == []
        assert await visit.deeds() == ([], [], [])


async def test_the_report_of_every_run_shows_each_as_text(
    visit: Visit, api: httpx.AsyncClient, runs: dict[str, str]
) -> None:
    for place, (text, run_id) in enumerate(runs.items()):
        report = (await api.get(f"/runs/{run_id}/report")).text
        reader = Reader()
        reader.feed(report)

        assert squeezed(text) in squeezed("".join(reader.texts)), text
        assert reader.elements & ACTIVE == set(), text
        assert [name for name in reader.attributes if name.startswith("on")] == []
        if place % 20 == 0:
            await visit.page.goto(f"{visit.address}/runs/{run_id}/report")
            assert squeezed(text) in squeezed(await visit.page.inner_text("body"))
    assert await visit.deeds() == ([], [], [])


ACTIVE = {"iframe", "object", "embed", "form", "base", "foreignobject", "animate", "math", "video", "audio", "marquee"}


class Reader(HTMLParser):
    """The words of a page and what it is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.elements: set[str] = set()
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


HOVER = """(selector) => {
    const graph = document.querySelector(selector + " .js-plotly-plot") || document.querySelector(selector);
    const seen = [];
    graph.data.forEach((trace, curveNumber) => {
        const rows = trace.type === "heatmap" ? trace.z.length : 1;
        for (let row = 0; row < rows; row += 1) {
            const last = (trace.x || trace.y || []).length - 1;
            const point = trace.type === "heatmap" ? [row, 0] : last;
            try {
                window.Plotly.Fx.hover(graph, [{curveNumber, pointNumber: point}]);
            } catch (nothing_there) { continue; }
            seen.push(graph.querySelector(".hoverlayer").textContent);
        }
    });
    return seen.join(" ");
}"""
"""What is written beside the pointer over the last point of every line, and over every row of a map."""


async def drawn(page: Page, selector: str) -> str:
    """What a figure says: its ticks, legend and labels, and what it says under the pointer."""
    await page.wait_for_selector(f"{selector} .trace, {selector} .heatmaplayer image", state="attached", timeout=60_000)
    said = await page.evaluate(
        "(selector) => [...document.querySelectorAll(selector + ' text')].map(one => one.textContent).join('\\n')",
        selector,
    )
    return str(said) + "\n" + str(await page.evaluate(HOVER, selector))


async def test_figures_of_compared_runs_show_each_as_text(visit: Visit, runs: dict[str, str]) -> None:
    """Legend and hover."""
    names = list(runs)
    for place in range(0, len(names), 20):
        shown = names[place : place + 20]
        await visit.page.goto(f"{visit.address}/compare?runs={','.join(runs[name] for name in shown)}")
        await visit.page.wait_for_selector("#compare-body:not(.loading) .trace", state="attached", timeout=60_000)
        seen = squeezed(await drawn(visit.page, "#compare-body") + await visit.text())

        assert [text for text in shown if squeezed(text) not in seen] == []
        assert await visit.deeds() == ([], [], [])


LAYERS_AT_ONCE = 36
"""Of one run: a figure draws 48."""


async def run_with_layers(api: httpx.AsyncClient, names: Sequence[str]) -> str:
    """The id of a run that has sent records of layers with these names."""
    run_id = str(uuid4())
    steps = make_measurements(first_seq=2, steps=range(120))
    groups = [make_groups(seq=122 + place, step=10 * place + 9, names=names) for place in range(12)]
    run = make_run(project="hostile", task="layers", name="layers")
    body = make_batch(run_id=run_id, run=run, measurements=steps, groups=groups)
    answer = await api.post(f"/api/v1/streams/{uuid4()}/batches", json=body)
    assert answer.status_code == 200, answer.text
    return run_id


async def saved(page: Page, card: str, words: str) -> bytes:
    """The file that an entry of a card's menu gives."""
    await page.locator(f"{card} .card-menu summary").click()
    async with page.expect_download() as download:
        await page.locator(f"{card} .card-menu").get_by_role("button", name=words).click()
    file = Path(await (await download.value).path())
    return await asyncio.to_thread(file.read_bytes)


async def test_the_map_of_layers_and_its_files_show_each_name_as_text(visit: Visit, api: httpx.AsyncClient) -> None:
    """Axis, data as CSV, picture as SVG, table."""
    page, card = visit.page, ".layers-card"
    for place in range(0, len(hostile_texts.ALL), LAYERS_AT_ONCE):
        names = hostile_texts.ALL[place : place + LAYERS_AT_ONCE]
        await page.goto(f"{visit.address}/runs/{await run_with_layers(api, names)}")
        seen = squeezed(await drawn(page, "#run-layers"))
        rows = list(csv.reader(io.StringIO((await saved(page, card, "Data as CSV")).decode("utf-8-sig"))))
        svg = Reader()
        svg.feed((await saved(page, card, "Picture as SVG")).decode())
        await page.locator(f"{card} .card-menu summary").click()
        await page.locator(f"{card} .card-menu").get_by_role("button", name="Show as table").click()
        table = squeezed(await page.get_by_role("dialog").inner_text())

        # an axis has room for both ends of names
        assert [name for name in names if squeezed(name[:9]) not in seen or squeezed(name[-4:]) not in seen] == []
        assert [name for name in names if squeezed(name) not in table] == []
        assert {text for row in rows for cell in row for text in (cell, cell.removeprefix("'"))} >= set(names)
        assert_safe_cells(rows)
        assert svg.elements & (ACTIVE | {"script"}) == set()
        assert [name for name in svg.attributes if name.startswith("on")] == []
        assert await visit.deeds() == ([], [], [])


async def test_the_list_as_a_file_holds_each_as_text(api: httpx.AsyncClient, runs: dict[str, str]) -> None:
    answer = await api.get("/exports/runs.csv", params={"project": "hostile"})
    rows = list(csv.reader(io.StringIO(answer.text)))

    cells = {text for row in rows for cell in row for text in (cell, cell.removeprefix("'"))}
    assert [text for text in runs if text not in cells] == []
    assert_safe_cells(rows)
    assert "attachment" in answer.headers["content-disposition"]


def assert_safe_cells(rows: list[list[str]]) -> None:
    """No cell is a formula to a spreadsheet; numbers are numbers."""
    for cell in itertools.chain.from_iterable(rows):
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
            assert re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", cell), cell


async def test_a_page_that_forgets_to_escape_is_caught(browser: Browser, new_database: Callable[[], str]) -> None:
    """The watch works: dialogs and requests beyond the server are seen where nothing holds them back."""

    def forgetful(app: FastAPI) -> None:
        @app.get("/forgetful")
        async def show() -> HTMLResponse:
            body = "<img src=x onerror=alert(1)><img src='https://evil.example/x.png'>"
            return HTMLResponse(body, headers={"Content-Security-Policy": "default-src * 'unsafe-inline'"})

    with served_app(new_database(), extend=forgetful) as url:
        context = await browser.new_context(extra_http_headers={"Authorization": f"Bearer {TOKEN}"})
        page = await context.new_page()
        await page.add_init_script(WATCH)
        visit = Visit(page, url)
        await page.goto(f"{url}/forgetful")
        await page.wait_for_timeout(1000)
        dialogs, strangers, _ = await visit.deeds()
        await context.close()

    assert dialogs == ["1"]
    assert strangers == ["https://evil.example/x.png"]


def squeezed(text: str) -> str:
    """The text without white space, which a page may fold, and without the joiners that figures put behind a $."""
    return "".join(text.replace("\u2060", "").split())
