"""Gzip of answers, but for those of the API that never leave the machine: there it takes longer than what it saves."""

from typing import Final

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

API: Final = "/api/"


class Compression(GZipMiddleware):
    """Starlette's, which leaves the API's answers as they are where server and clients are on one machine."""

    def __init__(self, app: ASGIApp, *, minimum_size: int, compresslevel: int, is_on_one_machine: bool) -> None:
        """What to compress.

        Args:
            app: The application within.
            minimum_size: Bytes from which an answer is compressed.
            compresslevel: Of zlib.
            is_on_one_machine: Whether this server answers to its own machine alone. Packing 160 KB of a chart takes the
                processor 1.6 ms there. Pages are packed still: a browser may reach them through a tunnel, and their
                scripts are megabytes.
        """
        super().__init__(app, minimum_size=minimum_size, compresslevel=compresslevel)
        self._is_on_one_machine = is_on_one_machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, compressed where the client takes it and it is worth it."""
        if self._is_on_one_machine and scope["type"] == "http" and scope["path"].startswith(API):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
