"""Names, tags and configs as hostile as people can make them are text on every page of a real browser."""

from collections.abc import AsyncIterator, Callable, Iterator
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.async_api import Browser, Page

import hostile_texts
from noisescale_dashboard.app import mount
from reproduction_bodies import claim_body, claim_summary
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
async def runs(address: str) -> dict[str, UUID]:
    """A run for each text, which is its name, its task, a tag and a value and key of its config."""
    found = {}
    async with httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        for text in hostile_texts.ALL:
            body = {
                "project": "hostile",
                "task": text,
                "name": text,
                "tags": [text[:64]],
                "config": {text: text},
                "unit": text[:64],
                "example": text[:64],
                "device": text,
            }
            answer = await client.post("/api/v1/runs", json=body)
            assert answer.status_code == 201, answer.text
            found[text] = UUID(answer.json()["id"])
    return found


def test_there_are_sixty_of_them() -> None:
    assert len(set(hostile_texts.ALL)) >= 60


async def test_the_table_of_runs_shows_each_as_text(visit: Visit, runs: dict[str, UUID]) -> None:
    await visit.page.goto(f"{visit.address}/runs")
    await visit.page.wait_for_selector(".ag-row", timeout=60_000)
    seen = ""
    for _ in range(40):
        seen += await visit.page.inner_text(".ag-root")
        await visit.page.mouse.move(700, 600)
        await visit.page.mouse.wheel(0, 400)
        await visit.page.wait_for_timeout(50)

    missing = [text for text in runs if squeezed(text) not in squeezed(seen)]
    assert missing == []
    assert await visit.deeds() == ([], [], [])


@pytest.mark.parametrize("text", hostile_texts.ALL)
async def test_the_page_of_a_run_shows_it_as_text(visit: Visit, runs: dict[str, UUID], text: str) -> None:
    await visit.page.goto(f"{visit.address}/runs/{runs[text]}")
    await visit.page.wait_for_selector("#run-facts .fact", timeout=60_000)
    await visit.page.wait_for_timeout(300)

    assert squeezed(text) in squeezed(await visit.text())
    assert await visit.deeds() == ([], [], [])


@pytest.mark.parametrize("text", hostile_texts.ALL[::6])
async def test_the_report_of_a_run_shows_it_as_text(visit: Visit, runs: dict[str, UUID], text: str) -> None:
    await visit.page.goto(f"{visit.address}/runs/{runs[text]}/report")

    assert squeezed(text) in squeezed(await visit.page.inner_text("body"))
    assert await visit.deeds() == ([], [], [])


async def test_the_page_of_reproductions_shows_each_as_text(visit: Visit, address: str) -> None:
    found = claim_summary()
    (template,) = found["growth"][:1]
    found["growth"] = [{**template, "task": text} for text in hostile_texts.ALL]
    found["exclusions"] = list(hostile_texts.ALL)
    for row, text in zip(found["targets"], hostile_texts.ALL[::3], strict=False):
        row.update(task=text, unit=text, optimizer=text)
    for point, text in zip(found["series"][0]["points"], hostile_texts.ALL[3::6], strict=False):
        point["task"] = text
    async with httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        answer = await client.post("/api/v1/reproductions", json=claim_body(project="hostile", claim=found))
        assert answer.status_code == 201, answer.text

    await visit.page.goto(f"{visit.address}/reproduce")
    await visit.page.wait_for_selector("#reproduce-more td", timeout=60_000)
    await visit.page.wait_for_selector("#reproduce-scatter .trace", timeout=60_000)
    seen = squeezed(await visit.page.evaluate("document.getElementById('reproduce-more').textContent"))

    assert [text for text in hostile_texts.ALL if squeezed(text) not in seen] == []
    assert await visit.deeds() == ([], [], [])


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
    """The text without white space, which a page may fold."""
    return "".join(text.split())
