"""/login and /logout: how a person's browser becomes known. No passwords.

A local server takes the token that it printed. A team's server takes a one-time link, what a trusted proxy says in a
header, or the organisation's OpenID Connect provider, and keeps the session itself.
"""

import base64
import hashlib
from datetime import UTC, datetime
from html import escape
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.requests import cookie_parser

from noisescale_server.api.access.credentials import Credentials
from noisescale_server.api.access.login_provider import Provider
from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.platform.refusals import BodyTooLarge
from noisescale_server.process.client_address import is_within
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import sessions
from noisescale_server.services.access.sessions import Secret, WayBack
from noisescale_server.services.platform.errors import NotAllowed
from noisescale_server.storage.access import people

# The page at /login: one of a few sentences, a link or a button. It asks for nothing but itself.

STYLE = """
:root { color-scheme: light dark; --canvas: #f6f7f9; --panel: #fff; --text: #14171f; --soft: #4b5361; --line: #e4e7ec;
  --button: #14171f; --on-button: #fff; --accent: #2a6bd4; --warn: #8f5f00; --warn-ground: #fbf2da; }
@media (prefers-color-scheme: dark) {
  :root { --canvas: #0e1014; --panel: #15181e; --text: #e9ebef; --soft: #aeb5c1; --line: #252a33;
    --button: #e9ebef; --on-button: #15181e; --accent: #6ca6ff; --warn: #e0b04a; --warn-ground: #302711; }
}
body { font: 14px/20px Inter, system-ui, sans-serif; color: var(--text); background: var(--canvas); margin: 0;
  display: grid; min-height: 100vh; place-items: center; }
main { width: min(25rem, calc(100vw - 28px)); box-sizing: border-box; padding: 24px; background: var(--panel);
  border: 1px solid var(--line); border-radius: 10px; }
.brand { display: flex; align-items: center; gap: 10px; font-weight: 600; margin-bottom: 16px; }
h1 { font-size: 20px; line-height: 28px; font-weight: 650; letter-spacing: -.02em; margin: 0 0 8px; }
p { margin: 8px 0; color: var(--soft); text-wrap: pretty; }
.problem { color: var(--warn); background: var(--warn-ground); border-radius: 6px; padding: 8px 12px; }
code { font-family: ui-monospace, monospace; font-size: .92em; color: var(--text); }
.go { display: block; width: 100%; box-sizing: border-box; margin-top: 16px; padding: 9px 16px; font: inherit;
  font-weight: 600; text-align: center; color: var(--on-button); background: var(--button); border: 0;
  border-radius: 6px; text-decoration: none; cursor: pointer; }
.go:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""
"""The dashboard's tokens: this page is served without it."""

MARK = (
    '<svg width="28" height="28" viewBox="0 0 22 22" aria-hidden="true"><rect width="22" height="22" rx="6" '
    'fill="#14171F"/><path d="M4.5 16.5H10.5V12.5H17.5" fill="none" stroke="#F2994A" stroke-width="2" '
    'stroke-linejoin="round" stroke-linecap="round"/><path d="M4.5 12.5 C7 7.5 11 5.6 17.5 5.4" fill="none" '
    'stroke="#6CA6FF" stroke-width="2.2" stroke-linecap="round"/></svg>'
)


def page_headers() -> dict[str, str]:
    """What the page is sent with: its one style by its hash, forms to this server only."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    return {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin", "Cache-Control": "no-store"}


def login_html(*, is_local: bool, link: str, problem: str, onwards: str, start: str | None) -> str:
    """The whole page.

    Args:
        is_local: Of a server for one user.
        link: A one-time link's secret, to be sent by a button.
        problem: What went wrong before; empty: nothing.
        onwards: Where to go afterwards.
        start: Where the organisation's login begins; None without one.
    """
    sorry = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    body = _local_page(onwards) if is_local else _team(link, onwards, start)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Log in · noisescale</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style>{STYLE}</style></head><body><main><div class="brand">{MARK}noisescale</div>'
        f"<h1>Log in</h1>{sorry}{body}</main></body></html>"
    )


def _local_page(onwards: str) -> str:
    return (
        "<p>Open the link that <code>noisescale up</code> printed in its terminal. It is new at every start.</p>"
        "<p>Already signed in?</p>"
        f'<a class="go" href="{escape(onwards)}">Continue</a>'
    )


def _team(link: str, onwards: str, start: str | None) -> str:
    if link:
        return (
            "<p>This link logs you in once.</p>"
            '<form method="post" action="/login">'
            f'<input type="hidden" name="link" value="{escape(link)}">'
            f'<input type="hidden" name="next" value="{escape(onwards)}">'
            '<button class="go">Log in</button></form>'
        )
    if start:
        return f'<p>Log in with your organisation.</p><a class="go" href="{escape(start)}">Log in</a>'
    return "<p>Ask an admin of this server for a one-time link.</p>"


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
