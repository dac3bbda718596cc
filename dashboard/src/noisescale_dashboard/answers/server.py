"""What the API says of the server itself."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import Json, decoded


@dataclass(frozen=True, slots=True)
class Stored:
    """What a project has stored; bytes in proportion to its records."""

    project: str
    num_runs: int = 0
    num_records: int = 0
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Server:
    """Which version answers, from which database, and what each project has stored."""

    version: str
    database: str = ""
    projects: tuple[Stored, ...] = ()


def server(data: Json) -> Server:
    """The server in `data`."""
    return decoded(Server, data)
