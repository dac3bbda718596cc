"""Questions to a server's REST API with one key, and the server's own sentence where it refuses."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import NoiseScaleError

ROOT = "/api/v1"
OK = range(200, 300)


class Refused(NoiseScaleError):
    """The server has answered, and not with what was asked for; the message is its own sentence.

    Args:
        status: HTTP status.
        problem: Its name of the problem, "run-not-found"; None in what is not the server's.
        sentence: What it says.
    """

    def __init__(self, status: int, problem: str | None, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.problem = problem


class Answered(dict[str, Any]):
    """The JSON object of an answer; what is looked for in it and not there is a sentence, as a proxy's JSON has it not.

    Args:
        found: The object.
        url: Of the server.
    """

    def __init__(self, found: Mapping[str, Any], url: str) -> None:
        super().__init__(found)
        self._url = url

    def __missing__(self, name: str) -> NoReturn:
        raise Refused(
            HTTPStatus.OK,
            None,
            f"{self._url} answers without {name!r}: it is no noisescale server, or one of another version",
        )


class Api:
    """The REST API of a server, as the owner of one key: it may what the key may.

    Args:
        server: Its address, and the key.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    @classmethod
    def of(cls, config: Config) -> "Api":
        """The API of the server that these settings name."""
        return cls(HttpServer(config.url, config.api_key, f"noisescale/{__version__}"))

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._server.url

    def get(self, path: str, **query: object) -> Mapping[str, Any]:
        """The JSON object of a GET.

        Args:
            path: Below `/api/v1`; its parts are quoted by `path_of`.
            query: Values by name; None is left out, a list repeats the name.

        Raises:
            Refused: If the server says anything else.
            TransportError: Without an answer.
        """
        return self._ask("GET", with_values(path, query), None)

    def send(self, method: str, path: str, body: Mapping[str, object]) -> Mapping[str, Any]:
        """The JSON object that answers a change.

        Args:
            method: "POST" or "PATCH".
            path: Below `/api/v1`.
            body: JSON.

        Raises:
            Refused: If the server says anything else.
            TransportError: Without an answer.
        """
        return self._ask(method, path, body)

    def close(self) -> None:
        """Give the connection back."""
        self._server.close()

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None) -> Mapping[str, Any]:
        answer = self._server.request(method, f"{ROOT}{path}", body)
        if answer.status in OK and answer.body:
            return Answered(answer.body, self.url)
        if answer.problem is None:
            raise Refused(
                answer.status,
                None,
                f"what answers at {self.url} is no noisescale server, or a proxy before it (status {answer.status}): "
                "set NOISESCALE_URL to the server's own address",
            )
        said = answer.body.get("detail") or answer.body.get("title") or answer.problem
        raise Refused(answer.status, answer.problem, f"{said}{_fields(answer.body)}")


def _fields(body: Mapping[str, Any]) -> str:
    """Which fields are wrong and why, where the server lists them besides its sentence."""
    errors = body.get("errors")
    if not isinstance(errors, list):
        return ""
    said = str(body.get("detail"))
    listed = [f"{one.get('field')}: {one.get('message')}" for one in errors if isinstance(one, dict)]
    new = [one for one in listed if one not in said]
    return f" ({'; '.join(new)})" if new else ""


def path_of(*parts: str) -> str:
    """A path of these parts, each of them quoted: a name may hold a slash.

    Args:
        parts: Names and ids in their order.
    """
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def with_values(path: str, query: Mapping[str, object]) -> str:
    """The path with what was said as its query; None is left out, a list repeats its name.

    Args:
        path: Without a query.
        query: Values by name.
    """
    said: list[tuple[str, str]] = []
    for name, value in query.items():
        values = value if isinstance(value, list | tuple) else [value]
        said += [(name, _text(one)) for one in values if one is not None]
    return f"{path}?{urlencode(said)}" if said else path


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
