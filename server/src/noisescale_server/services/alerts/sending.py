"""One message over HTTP: to the address that was looked at, once, with an answer of which only the head is read."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import httpx

from noisescale_server.services.alerts.addresses import Endpoint, ForbiddenAddress, Resolve, target_of
from noisescale_server.services.alerts.delivering import AttemptOutcome, Send

SECONDS: Final = 10.0
"""For all of it: the name, the connection, the answer's head."""

LONGEST_SAID: Final = 200

NewClient = Callable[[], httpx.AsyncClient]


NAMES_AT_ONCE: Final = 32
MOST_ADDRESSES: Final = 3
"""Of a host that are tried one after the other, where the one before takes no connection."""

# threads of its own: a name server that never answers holds one for half a minute, and the event loop's are few
_lookups = ThreadPoolExecutor(NAMES_AT_ONCE, thread_name_prefix="noisescale-names")


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the system knows them."""
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_lookups, ask)
    return [str(address[0]) for *_, address in found]


def new_client() -> httpx.AsyncClient:
    """A client for one message: it follows no redirect, keeps no connection, and asks no proxy of the environment."""
    limits = httpx.Timeout(SECONDS, connect=SECONDS / 2)
    return httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=limits)


def sender(
    allowed: Collection[str], *, resolve: Resolve = resolve, client: NewClient = new_client, seconds: float = SECONDS
) -> Send:
    """A function that posts a body and says what came of it; it raises nothing.

    Args:
        allowed: Hosts that the server's settings name.
        resolve: Asks for addresses of a name.
        client: Makes the client of one message.
        seconds: For all of one message.
    """

    async def send(url: str, body: bytes, headers: dict[str, str]) -> AttemptOutcome:
        try:
            async with asyncio.timeout(seconds):
                target = await target_of(url, allowed, resolve)
                return await _post(client, target, body, headers)
        except ForbiddenAddress as error:
            return AttemptOutcome(_short(f"not sent: {error}"), is_final=True)
        except TimeoutError:
            return AttemptOutcome(f"no answer within {seconds:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            # a certificate of another host, a name without an address, an answer that is none
            return AttemptOutcome(_short(f"no answer: {type(error).__name__} {error}".strip()))

    return send


async def _post(client: NewClient, target: Endpoint, body: bytes, headers: dict[str, str]) -> AttemptOutcome:
    """Connect to the address, speak to the name: what a resolver says next does not matter any more."""
    *others, last = target.addresses[:MOST_ADDRESSES]
    for address in others:
        with contextlib.suppress(httpx.ConnectError, httpx.ConnectTimeout):  # nothing was said there
            return await _post_to(address, client, target, body, headers)
    return await _post_to(last, client, target, body, headers)


async def _post_to(
    address: str, client: NewClient, target: Endpoint, body: bytes, headers: dict[str, str]
) -> AttemptOutcome:
    scheme = "https" if target.is_encrypted else "http"
    at = f"[{address}]" if ":" in address else address
    url = f"{scheme}://{at}:{target.port}{target.path}"
    named = target.host if ":" not in target.host else f"[{target.host}]"
    is_usual = target.port == (443 if target.is_encrypted else 80)
    told = {**headers, "Host": named if is_usual else f"{named}:{target.port}", "Connection": "close"}
    async with client() as opened:
        request = opened.build_request(
            "POST", url, content=body, headers=told, extensions={"sni_hostname": target.host}
        )
        answer = await opened.send(request, stream=True)
        # its body is nobody's: it may have no end
        await answer.aclose()
    return AttemptOutcome(f"answered {answer.status_code}", answer.status_code, _retry_after(answer))


def _retry_after(answer: httpx.Response) -> float | None:
    """Seconds that the receiver asks to wait; None where it says none, or a date."""
    try:
        return float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SAID else text[: LONGEST_SAID - 1] + "…"
