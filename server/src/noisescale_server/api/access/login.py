"""/login and /logout: how a person's browser becomes known. No passwords.

A local server takes the token that it printed. A team's server takes a one-time link, what a trusted proxy says in a
header, or the organisation's OpenID Connect provider, and keeps the session itself.
"""

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.requests import cookie_parser

from noisescale_server.api.access.credentials import Credentials
from noisescale_server.api.access.login_page import login_html, page_headers
from noisescale_server.api.access.login_provider import Provider
from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.platform.refusals import BodyTooLarge
from noisescale_server.process.client_address import is_within
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import sessions
from noisescale_server.services.access.sessions import Secret, WayBack
from noisescale_server.services.platform.errors import NotAllowed
from noisescale_server.storage.access import people

router = APIRouter(include_in_schema=False)

STATE_COOKIE = "__Host-noisescale-login"
MAX_CHARACTERS = 2_000
MAX_FORM_BYTES = 8_000
DISABLED = "Your access to this server was removed. Ask an admin of it."
NOT_AGAIN = "This link was already used, or has expired. Ask for another one."


@router.get("/login")
async def show_login(request: Request, token: str = "", link: str = "", next: str = "/") -> Response:
    """The way in: for a local server the token, for a team's whatever has been set up."""
    mode: AccessMode = request.app.state.access_mode
    onwards = own_path(next)
    if mode.is_local:
        return _local(request, mode, token, onwards)
    person_id = await _of_proxy(request)
    if person_id is not None:
        return await _logged_in(request, person_id, "proxy", onwards)
    return _page(request, link=link[:MAX_CHARACTERS], onwards=onwards)


@router.post("/login")
async def take_link(request: Request) -> Response:
    """Log in by a one-time link; by a button, since programs that preview links open them too."""
    mode: AccessMode = request.app.state.access_mode
    if mode.is_local:
        raise NotAllowed("this server has no people: open the link that it printed when it started")
    mode.check_same_site(request.headers)
    fields = parse_qs((await _form(request)).decode("latin-1"))
    link, onwards = fields.get("link", [""])[0], own_path(fields.get("next", ["/"])[0])
    async with request.app.state.sessions.begin() as session:
        person_id = await sessions.take_link(session, Secret(link), now=datetime.now(UTC))
    if person_id is None:
        return _page(request, problem=NOT_AGAIN, onwards=onwards, status=403)
    return await _logged_in(request, person_id, "link", onwards)


@router.get("/login/start")
async def start_at_provider(request: Request, next: str = "/") -> Response:
    """To the organisation's login."""
    provider = _provider(request)
    state = Secret.new()
    departure = await provider.departure(state.text)
    way = WayBack(departure.nonce, departure.verifier, own_path(next))
    async with request.app.state.sessions.begin() as session:
        await sessions.keep_way_back(session, state, way, now=datetime.now(UTC))
    response = RedirectResponse(departure.address, 303)
    lives = int(sessions.ATTEMPT_LIVES.total_seconds())
    response.set_cookie(STATE_COOKIE, state.text, max_age=lives, secure=True, httponly=True, samesite="lax")
    return response


@router.get("/login/back")
async def come_back(request: Request, code: str = "", state: str = "", error: str = "") -> Response:
    """From the organisation's login, with a code that this browser has been sent to fetch."""
    provider = _provider(request)
    expected = cookie_parser(request.headers.get("cookie", "")).get(STATE_COOKIE)
    way = None
    if expected and expected == state:
        async with request.app.state.sessions.begin() as session:
            way = await sessions.take_way_back(session, Secret(state), now=datetime.now(UTC))
    if way is None:
        return _page(request, problem="This login was not started in this browser, or has expired.", status=403)
    if error or not code:
        return _page(request, problem="The organisation's login was not completed.", onwards=way.return_to, status=403)
    found = await provider.identity(code=code, nonce=way.nonce, verifier=way.verifier)
    async with request.app.state.sessions.begin() as session:
        person_id = await people.of_subject(session, found.subject, name=found.name, email=found.email)
    response = await _logged_in(request, person_id, "provider", way.return_to)
    response.delete_cookie(STATE_COOKIE, secure=True, httponly=True, samesite="lax")
    return response


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """The browser is not known any more."""
    mode: AccessMode = request.app.state.access_mode
    mode.check_same_site(request.headers)
    cookie = cookie_parser(request.headers.get("cookie", "")).get(mode.cookie)
    if cookie is not None and not mode.is_local:
        async with request.app.state.sessions.begin() as session:
            await sessions.log_out(session, Secret(cookie))
    response = RedirectResponse("/login", 303)
    mode.forget(response)
    return response


async def _form(request: Request) -> bytes:
    """The body of the page's own form.

    Raises:
        BodyTooLarge: When it holds more than that form sends.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise BodyTooLarge("sent", MAX_FORM_BYTES)
    return body


def own_path(given: str) -> str:
    """The path of this server's own page; "/" for what leads elsewhere."""
    parts = urlsplit(given)
    # browsers read a backslash as a slash and drop tabs and newlines, so that //elsewhere may hide behind them
    is_odd = any(character in given for character in "\\\t\r\n") or len(given) > MAX_CHARACTERS
    if is_odd or parts.scheme or parts.netloc or not given.startswith("/") or given.startswith("//"):
        return "/"
    return "/" if parts.path in ("/login", "/logout") else given


def _local(request: Request, mode: AccessMode, token: str, onwards: str) -> Response:
    if token and Credentials.is_token(mode, token):
        response: Response = RedirectResponse(onwards, 303, headers={"Referrer-Policy": "no-referrer"})
        secret = mode.browser_secret()
        assert secret is not None, "a local mode that knows a token has a cookie"
        mode.remember(response, secret)
        return response
    problem = "This link is of an earlier start of the server: open the one that it printed last." if token else ""
    return _page(request, problem=problem, onwards=onwards, status=403 if token else 200)


async def _logged_in(request: Request, person_id: UUID, how: str, onwards: str) -> Response:
    mode: AccessMode = request.app.state.access_mode
    async with request.app.state.sessions.begin() as session:
        cookie = await sessions.log_in(session, person_id, now=datetime.now(UTC), how=how)
    if cookie is None:
        return _page(request, problem=DISABLED, onwards=onwards, status=403)
    response = RedirectResponse(onwards, 303, headers={"Referrer-Policy": "no-referrer"})
    mode.remember(response, cookie.text)
    return response


async def _of_proxy(request: Request) -> UUID | None:
    """The person whom a trusted proxy names; None where none does."""
    settings: Settings = request.app.state.settings
    if settings.proxy_user_header is None or request.client is None:
        return None
    named = request.headers.getlist(settings.proxy_user_header)
    # the connection's own address: what proxies say of others' vouches for nobody
    if len(named) != 1 or not named[0].strip() or not is_within(request.client.host, settings.trusted_proxies):
        return None
    name = named[0].strip()[:200]
    async with request.app.state.sessions.begin() as session:
        return await people.of_subject(session, f"proxy|{name}", name=name, email=name if "@" in name else None)


def _provider(request: Request) -> Provider:
    provider: Provider | None = request.app.state.login_provider
    if provider is None:
        raise NotAllowed("no organisation's login is set up here: set NOISESCALE_OIDC_ISSUER, or use a one-time link")
    return provider


def _page(
    request: Request, *, link: str = "", problem: str = "", onwards: str = "/", status: int = 200
) -> HTMLResponse:
    mode: AccessMode = request.app.state.access_mode
    provider: Provider | None = request.app.state.login_provider
    start = None if provider is None or mode.is_local else "/login/start?" + urlencode({"next": onwards})
    html = login_html(is_local=mode.is_local, link=link, problem=problem, onwards=onwards, start=start)
    return HTMLResponse(html, status, headers=page_headers())
