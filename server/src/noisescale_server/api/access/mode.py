"""What the mode of the server asks of every request, and how its browsers are remembered.

local: one user on this machine. Requests come straight to a name of the loopback address, so that no other page's name
can be pointed here (DNS rebinding), and no proxy carries them further.
required: a team's server. Everybody has a key or logs in; browsers come to the public address.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response

from noisescale_server.process.settings import Settings
from noisescale_server.services.access.sessions import LONGEST
from noisescale_server.services.platform.errors import NotAllowed

LOOPBACK_HOST: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
FORM_PATHS: Final = ("/login", "/logout")
"""Where a plain HTML form is posted to; everything else that a cookie may change is JSON."""


@dataclass(frozen=True, slots=True)
class AccessMode:
    """How this server knows its visitors.

    Attributes:
        is_local: One user on this machine, known by `token`.
        token: Of this start; None in a team's server.
        cookie: Name of the cookie that remembers a browser.
        public_origin: Scheme, host and port at which browsers find a team's server.
    """

    is_local: bool
    cookie: str
    token: str | None = field(default=None, repr=False)
    public_origin: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> "AccessMode":
        """The mode that the settings ask for."""
        if settings.auth == "local":
            token = None if settings.local_token is None else settings.local_token.get_secret_value()
            return cls(True, f"ns_{settings.port}", token=token)
        return cls(False, "__Host-noisescale", public_origin=origin_of(settings.public_url or ""))

    def check_host(self, headers: Headers) -> None:
        """Raise unless the request came straight here.

        Raises:
            NotAllowed: In local mode, for another host's name, and for what a proxy has passed on.
        """
        if not self.is_local:
            return
        if any(name.startswith("x-forwarded-") or name == "forwarded" for name in headers):
            raise NotAllowed(
                "this server is for one user on its own machine, and a proxy passed this on: "
                "start it with NOISESCALE_AUTH=required and NOISESCALE_BEHIND_TLS_PROXY=true"
            )
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not LOOPBACK_HOST.fullmatch(hosts[0]):
            raise NotAllowed("this server answers to 127.0.0.1, localhost and [::1] only: open it under one of these")

    def check_origin(self, method: str, path: str, headers: Headers) -> None:
        """Raise unless a request that a cookie vouches for comes from a page of this server.

        Raises:
            NotAllowed: For a change that another site's page, or a form of one, may have sent.
        """
        if method in SAFE_METHODS:
            return
        self.check_same_site(headers)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if path not in FORM_PATHS and has_body and media_type != "application/json":
            raise NotAllowed("with a browser's login only JSON is taken: send Content-Type: application/json")

    def check_same_site(self, headers: Headers) -> None:
        """Raise unless a page of this server sent the request.

        Raises:
            NotAllowed: Otherwise.
        """
        origin = headers.get("origin")
        own = f"http://{headers.get('host', '')}" if self.is_local else self.public_origin
        is_same = origin.lower() == own if origin is not None and own else False
        says_same = headers.get("sec-fetch-site") == "same-origin" and origin in (None, own)
        if not (is_same or says_same):
            raise NotAllowed("another site's page may have sent this: open the page of this server and try again")

    def browser_secret(self) -> str | None:
        """What the local cookie holds: it follows from the token, so every process knows it, and does not show it."""
        if self.token is None:
            return None
        return hmac.new(self.token.encode(), b"browser of the local user", hashlib.sha256).hexdigest()

    def remember(self, response: Response, value: str) -> None:
        """Let the browser keep the cookie.

        Safari refuses Secure cookies over plain http, so a local one has neither Secure nor the prefix; its name holds
        the port, which cookies otherwise ignore.
        """
        response.set_cookie(
            self.cookie,
            value,
            max_age=None if self.is_local else int(LONGEST.total_seconds()),
            path="/",
            secure=not self.is_local,
            httponly=True,
            samesite="strict" if self.is_local else "lax",
        )

    @property
    def link_cookie(self) -> str:
        """Name of the cookie that holds the link by which a browser came."""
        return f"{self.cookie}_link"

    def remember_link(self, response: Response, link: str) -> None:
        """Let the browser keep the link until it is closed."""
        response.set_cookie(self.link_cookie, link, path="/", secure=not self.is_local, httponly=True, samesite="lax")

    def forget(self, response: Response) -> None:
        """Let the browser drop the cookie."""
        response.delete_cookie(
            self.cookie,
            path="/",
            secure=not self.is_local,
            httponly=True,
            samesite="strict" if self.is_local else "lax",
        )


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL as a browser writes them in `Origin`."""
    parts = urlsplit(url)
    default = {"https": 443, "http": 80}.get(parts.scheme)
    port = "" if parts.port in (None, default) else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}"
