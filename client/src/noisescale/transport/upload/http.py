"""Requests to the server; the only file that knows HTTP."""

import gzip
import json
import zlib
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit

import httpx

from noisescale.transport.upload.answers import Answer
from noisescale_core.errors import TransportError

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
MAX_ANSWER_BYTES = 64 << 20
UNAUTHORIZED = 401

UNANSWERED = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)
"""What a request may end with, whatever is in the answer of a proxy."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class HttpServer:
    """A noisescale server behind a URL. The connection is made by the thread that posts, and kept.

    Args:
        url: Address of the server.
        api_key: For the Authorization header; it goes to this address only, since no redirect is followed.
        user_agent: Name and version of the client.
        answer_seconds: Longest wait for an answer, and for a connection; None: half a minute.
    """

    def __init__(self, url: str, api_key: str | None, user_agent: str, *, answer_seconds: float | None = None) -> None:
        self.url = url.rstrip("/")
        self._answer_seconds = answer_seconds
        self._headers = {"Content-Type": "application/json", "User-Agent": user_agent}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._client: httpx.Client | None = None

    def post_batch(self, stream_id: str, body: bytes) -> Answer:
        """The server's answer to a batch.

        Raises:
            TransportError: Without an answer.
        """
        # small ones, too: the checksum of gzip tells a body that was damaged on its way
        content = gzip.compress(body, zlib.Z_BEST_SPEED)
        headers = self._headers | {"Content-Encoding": "gzip"}
        return self._answer("POST", f"/api/v1/streams/{stream_id}/batches", content, headers)

    def post_heartbeat(self, stream_id: str) -> Answer:
        """Where the server stands with a stream, after it has heard that the process lives.

        Raises:
            TransportError: Without an answer.
        """
        return self.request("POST", f"/api/v1/streams/{stream_id}/heartbeat")

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        """The server's answer to a request outside the stream of records: a sweep, or a question.

        Raises:
            TransportError: Without an answer.
        """
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        return self._answer(method, path, content, self._headers)

    def _answer(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> Answer:
        """What comes back, read as far as an answer of ours may be long: a proxy's may have no end."""
        try:
            with self._open().stream(method, f"{self.url}{path}", content=content, headers=headers) as response:
                found = b""
                for piece in response.iter_bytes():
                    found += piece
                    if len(found) > MAX_ANSWER_BYTES:
                        found = b""
                        break
                return Answer(response.status_code, _json_object(found), response.headers.get("Retry-After"))
        except UNANSWERED as error:
            raise self._no_answer(error) from error

    def read(self, path: str) -> tuple[int, str]:
        """Status and text of a GET.

        Raises:
            TransportError: Without an answer.
        """
        try:
            response = self._open().get(f"{self.url}{path}", headers=self._headers)
        except UNANSWERED as error:
            raise self._no_answer(error) from error
        return response.status_code, response.text

    def _no_answer(self, error: Exception) -> TransportError:
        if not isinstance(error, httpx.HTTPError):
            self.close()  # whatever it was that an answer left behind goes with the connection
        return TransportError(f"no answer from {self.url}: {str(error) or type(error).__name__}")

    def database_id(self) -> str | None:
        """Which database the server stores records in now; None for a server of a release that does not say.

        Raises:
            TransportError: Where nobody answers, or somebody else does, or the server is not ready.
        """
        answer = self.request("GET", "/readyz")
        if answer.status != 200 or answer.body.get("status") != "ok":
            raise TransportError(f"{self.url} does not say which database it has: {answer}")
        found = answer.body.get("database_id")
        return found if isinstance(found, str) else None

    def is_ready(self) -> bool:
        """Whether a noisescale server says at `/readyz` that it is; the page of a proxy is none, whatever its status.

        Raises:
            TransportError: Without an answer.
        """
        answer = self.request("GET", "/readyz")
        return answer.status == 200 and answer.body.get("status") == "ok"

    def refuses_key(self) -> bool:
        """Whether the server knows nobody by this key, or wants one where there is none.

        Raises:
            TransportError: Without an answer.
        """
        return self.request("GET", "/api/v1/me").status == UNAUTHORIZED

    def close(self) -> None:
        """Give the connection back."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def forget(self) -> None:
        """Leave an inherited connection alone, in a forked child: it is the parent's."""
        self._client = None

    def _open(self) -> httpx.Client:
        if self._client is None:
            # A proxy of the environment cannot reach this machine's own loopback.
            is_loopback = urlsplit(self.url).hostname in LOOPBACK
            seconds = ANSWER_SECONDS if self._answer_seconds is None else self._answer_seconds
            timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
            # Without TLS, proxy and redirects no certificate is ever looked at; loading them takes 13 ms.
            needs_certificates = not (is_loopback and self.url.startswith("http:"))
            self._client = httpx.Client(
                timeout=timeout,
                follow_redirects=False,
                trust_env=not is_loopback,
                verify=needs_certificates,
                # a proxy's cookie would go with every later request, and one that is not ASCII would end them all
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._client


def _json_object(content: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):  # a proxy's may be nested without end, too
        return {}
    return value if isinstance(value, dict) else {}
