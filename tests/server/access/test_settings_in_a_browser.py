"""People are taken out again by the buttons of Settings: clicked in Chromium, on the real server of a team."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from noisescale_dashboard.app import mount
from noisescale_server.storage.access import api_keys
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.engine import create_engine
from principals import COOKIE, OURS, SECRET, log_in, new_person
from served_app import free_port, served_app

pytestmark = pytest.mark.browser


@dataclass(frozen=True, slots=True)
class Place:
    """A team's server behind a socket, with three people.

    Attributes:
        url: Its address, at which browsers keep a Secure cookie without TLS.
        people: Ids by name.
        cookies: What the browser of each keeps, by name.
    """

    url: str
    people: dict[str, UUID]
    cookies: dict[str, str]

    def status_of(self, name: str) -> int:
        """What the person's browser is answered."""
        return httpx.get(f"{self.url}/api/v1/me", headers={"Cookie": f"{COOKIE}={self.cookies[name]}"}).status_code


@pytest.fixture
def database(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def served(database: str) -> Iterator[str]:
    port = free_port()
    url = f"http://localhost:{port}"
    team: dict[str, Any] = {"auth": "required", "secret_key": SECRET, "public_url": url, "local_token": None}
    with served_app(database, port=port, extend=mount, **team):
        yield url


@pytest.fixture
async def place(served: str, database: str) -> AsyncIterator[Place]:
    engine = create_engine(database, pool_size=1)
    store: Any = SimpleNamespace(state=SimpleNamespace(sessions=session_factory(engine)))
    async with store.state.sessions.begin() as session:
        await api_keys.project_ids(session, [OURS], creates=True)
    people = {
        "Ada Lovelace": await new_person(store, "Ada Lovelace", {}, is_administrator=True),
        "Grace Hopper": await new_person(store, "Grace Hopper", {OURS: "member"}),
        "Emmy Noether": await new_person(store, "Emmy Noether", {OURS: "viewer"}, is_administrator=True),
    }
    cookies = {name: await log_in(store, person_id) for name, person_id in people.items()}
    yield Place(served, people, cookies)
    await engine.dispose()


@pytest.fixture
async def page(browser: Browser, place: Place) -> AsyncIterator[Page]:
    """Settings, as Ada sees them."""
    context = await browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="light")
    cookie = {"name": COOKIE, "value": place.cookies["Ada Lovelace"], "secure": True, "httpOnly": True}
    await context.add_cookies([{**cookie, "url": place.url.replace("http:", "https:")}])  # type: ignore[typeddict-item]
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    await opened.goto(f"{place.url}/settings")
    await expect(opened.locator("#settings-logins")).to_be_visible()
    # a list of choices that is opened before the people are there closes when they come
    await expect(opened.locator("#settings-people tbody tr")).to_have_count(len(place.people))
    yield opened
    await context.close()
    assert complaints == []


async def choose(page: Page, name: str) -> None:
    """The person whom the buttons are about from now on."""
    await page.locator("#settings-person").click()
    await page.get_by_role("option", name=name).click()
    await expect(page.locator("#settings-person")).to_have_value(name)


async def click(page: Page, button: str, said: str) -> None:
    await page.get_by_role("button", name=button, exact=True).click()
    await expect(page.locator("#settings-person-said")).to_contain_text(said)


async def standing(page: Page, name: str, expected: str) -> None:
    """The person's row says so."""
    row = page.locator("#settings-people tbody tr", has_text=name)
    await expect(row.locator("td").nth(1)).to_have_text(expected)


@pytest.mark.slow
async def test_a_person_is_disabled_and_enabled_again(place: Place, page: Page) -> None:
    assert place.status_of("Grace Hopper") == 200
    await choose(page, "Grace Hopper")

    await click(page, "Disable", "Disabled: logins have ended")
    await standing(page, "Grace Hopper", "disabled: cannot log in")
    assert place.status_of("Grace Hopper") == 401

    await click(page, "Enable", "Enabled: they can log in again")
    await standing(page, "Grace Hopper", "member in ours")
    # the login has ended for good
    assert place.status_of("Grace Hopper") == 401


@pytest.mark.slow
async def test_a_role_and_administration_are_taken_away_and_the_last_admin_stays(page: Page) -> None:
    await choose(page, "Grace Hopper")
    await page.locator("#settings-person-project").fill(OURS)
    await click(page, "Remove", "Saved.")
    await standing(page, "Grace Hopper", "none")

    await choose(page, "Emmy Noether")
    await standing(page, "Emmy Noether", "admin of all projects")
    await click(page, "Remove admin rights", "Admin rights removed.")
    await standing(page, "Emmy Noether", "viewer in ours")

    await choose(page, "Ada Lovelace")
    await click(page, "Remove admin rights", "last admin")
    await standing(page, "Ada Lovelace", "admin of all projects")
    await expect(page.locator("#settings-audit")).to_contain_text("administration taken away")
