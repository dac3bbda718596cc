"""What is owed is sent until it is taken, or said to be undelivered: with back-off, by the rules of delivery.

A receiver that answers 2xx has taken the event, and is never sent it again. Without an answer nobody knows: it is sent
again under the same id (`webhook-id`), by which the receiver tells one that it has.
"""

import asyncio
import contextlib
import logging
import math
import random
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import httpx
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.services.alerts.addresses import Endpoint, ForbiddenAddress, Resolve, target_of
from noisescale_server.services.alerts.payloads import Message, Shape, body_of, secret_of, signed_headers
from noisescale_server.storage.alerts import outbox
from noisescale_server.storage.alerts.outbox import Claimed

AT_ONCE: Final = 50
"""Deliveries that one server works on at a time."""

SETTLED_AT_ONCE: Final = 3
"""Connections that this takes from requests at most."""

LEASE: Final = timedelta(minutes=2)
"""Longer than any attempt; after it another server tries."""

FIRST_WAIT: Final = timedelta(seconds=1)
LONGEST_WAIT: Final = timedelta(hours=1)
GIVEN_UP_AFTER: Final = timedelta(hours=24)

log = logging.getLogger(__name__)

TAKEN: Final = range(200, 300)
MAY_SAY_WHEN: Final = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What an attempt came to.

    Attributes:
        said: In a few words, for whoever looks.
        status: Of the answer; None without one.
        retry_after: Seconds that the receiver asks to wait; None: nothing.
        is_final: It may never go there: nothing is tried again.
    """

    said: str
    status: int | None = None
    retry_after: float | None = None
    is_final: bool = False

    @property
    def is_taken(self) -> bool:
        """Whether the receiver has it."""
        return self.status is not None and self.status in TAKEN


Send = Callable[[str, bytes, dict[str, str]], Awaitable[AttemptOutcome]]
"""Posts a body with headers to an address."""


@dataclass(frozen=True, slots=True)
class Post:
    """What deliveries are made with.

    Attributes:
        send: Posts one message.
        pepper: Secrets of receivers follow from it.
        public_url: Of the server; None: it has none.
        dice: Uniform in [0, 1), so that a thousand events do not come back at the same moment.
    """

    send: Send
    pepper: bytes
    public_url: str | None = None
    dice: Callable[[], float] = random.random


async def deliver_due(
    sessions: async_sessionmaker[AsyncSession], post: Post, now: Callable[[], datetime], *, at_once: int = AT_ONCE
) -> int:
    """Try what is due; how many deliveries that were.

    Args:
        sessions: Of the database.
        post: What they are made with.
        now: The server's clock.
        at_once: Most of them.
    """
    moment = now()
    async with sessions.begin() as session:
        claimed = await outbox.claim(session, now=moment, until=moment + LEASE, limit=at_once)
    # what a receiver has taken must be written down: a pool without a free connection would have it sent again
    turns = asyncio.Semaphore(SETTLED_AT_ONCE)
    done = await asyncio.gather(*(_try(sessions, one, post, now, turns) for one in claimed), return_exceptions=True)
    for failure in done:
        if isinstance(failure, BaseException):
            raise failure
    return len(claimed)


async def _try(
    sessions: async_sessionmaker[AsyncSession],
    one: Claimed,
    post: Post,
    now: Callable[[], datetime],
    turns: asyncio.Semaphore,
) -> None:
    """Attempt a delivery, and write down at once what came of it: the others may take longer."""
    try:
        outcome = await _attempt(one, post, now())
    except Exception:
        # a fault of ours: without a word of it the message would be tried, and never given up
        log.exception("an alert could not be sent")
        outcome = AttemptOutcome("not sent: a fault of the server, which its log has")
    state, due_at = verdict(one, outcome, now=now(), dice=post.dice)
    said = outcome.said if state != "undelivered" else f"given up: {outcome.said}"
    async with turns, sessions.begin() as session:
        await outbox.settle(session, one, state=state, answer=said, due_at=due_at, now=now())


def verdict(one: Claimed, outcome: AttemptOutcome, *, now: datetime, dice: Callable[[], float]) -> tuple[str, datetime]:
    """What an attempt makes of a delivery, and when the next one is due.

    Args:
        one: The delivery, this attempt counted.
        outcome: What the attempt came to.
        now: When it ended.
        dice: Uniform in [0, 1).
    """
    if outcome.is_taken:
        return "delivered", now
    due_at = now + wait_after(one.num_attempts, outcome, dice)
    if outcome.is_final or due_at - one.created_at > GIVEN_UP_AFTER:
        return "undelivered", now
    return "waiting", due_at


def wait_after(num_attempts: int, outcome: AttemptOutcome, dice: Callable[[], float]) -> timedelta:
    """How long to wait: as the receiver says, at most an hour, else full jitter of a time that doubles up to an hour.

    Args:
        num_attempts: So far.
        outcome: Of the last one.
        dice: Uniform in [0, 1).
    """
    if outcome.retry_after is not None and outcome.status in MAY_SAY_WHEN:
        asked = outcome.retry_after if math.isfinite(outcome.retry_after) else LONGEST_WAIT.total_seconds()
        wanted = min(max(asked, FIRST_WAIT.total_seconds()), LONGEST_WAIT.total_seconds())
        return timedelta(seconds=wanted + dice())
    seconds = min(FIRST_WAIT.total_seconds() * 2.0 ** min(num_attempts, 20), LONGEST_WAIT.total_seconds())
    return FIRST_WAIT + timedelta(seconds=seconds * dice())


async def _attempt(one: Claimed, post: Post, now: datetime) -> AttemptOutcome:
    if one.url is None or one.shape is None:
        return AttemptOutcome("the receiver was deleted", is_final=True)
    message = message_of(one, post.public_url)
    shape: Shape = one.shape  # type: ignore[assignment]  # the table holds no other
    body = body_of(message, shape)
    headers = signed_headers(secret_of(post.pepper, one.receiver_id), one.event_id, body, now)
    return await post.send(one.url, body, headers)


def message_of(one: Claimed, public_url: str | None) -> Message:
    """The event as it is told to this receiver."""
    base = (public_url or "").rstrip("/")
    return Message(
        id=one.event_id,
        kind=one.kind,  # type: ignore[arg-type]  # the API takes no other
        rule=one.rule_name,
        project=one.project,
        run_id=one.run_id,
        run=one.run_name,
        sentence=one.sentence,
        happened_at=one.happened_at,
        url=f"{base}/runs/{one.run_id}" if base and one.run_id else None,
        to=one.email_to,
    )


# One message over HTTP: to the address that was looked at, once, with an answer of which only the head is read.

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
