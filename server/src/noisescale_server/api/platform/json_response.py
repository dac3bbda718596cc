"""JSON written by orjson: ten times faster than the standard library for columns of numbers."""

from typing import Any

import orjson
from starlette.responses import JSONResponse


class JsonColumns(JSONResponse):
    """A dict of columns as JSON, without a model in between: checking 15,000 numbers of our own would cost 5 ms."""

    def render(self, content: Any) -> bytes:
        """The content as bytes; numbers that are not finite become null."""
        return orjson.dumps(content)
