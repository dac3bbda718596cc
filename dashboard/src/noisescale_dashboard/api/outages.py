"""Whether the API answered while a callback ran, told to the browser in a header of the callback's answer.

A callback that gets no answer still draws a page, with a note; only the browser can say until when what stands there
was true, and try again.
"""

from contextvars import ContextVar

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CALLBACKS = "/_dash-update-component"
HEADER = "X-Noisescale-Api"

_answers: ContextVar[list[bool] | None] = ContextVar("answers", default=None)


def remember(*, has_answered: bool) -> None:
    """Count one more request of the running callback, answered or not."""
    known = _answers.get()
    if known is not None:
        known.append(has_answered)


class OutageHeader:
    """Middleware that marks the answers of callbacks that asked the API: "up", or "down" if it once did not answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["path"] != CALLBACKS:
            await self.app(scope, receive, send)
            return
        known: list[bool] = []
        # a callback runs in copies of this context: they share the list
        token = _answers.set(known)

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start" and known:
                MutableHeaders(scope=message)[HEADER] = "up" if all(known) else "down"
            await send(message)

        try:
            await self.app(scope, receive, send_marked)
        finally:
            _answers.reset(token)
