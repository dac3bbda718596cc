"""Where the client sends, as whom, and how often: argument > environment > default.

The environment is read in `Config.from_env` and nowhere else.
"""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from uuid import UUID

from noisescale.kernels.preference import Kernels
from noisescale_core.errors import ConfigError

DEFAULT_URL = "http://127.0.0.1:8321"

MODES = ("online", "offline", "disabled")

KERNELS = ("auto", "triton", "torch")

Durability = Literal["auto", "direct", "async"]
DURABILITIES = ("auto", "direct", "async")

Overflow = Literal["drop_oldest", "drop_newest"]
OVERFLOWS = ("drop_oldest", "drop_newest")


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of one run's client.

    Attributes:
        url: Address of the server, without a path.
        api_key: Sent as `Authorization: Bearer`; never stored, printed or logged.
        mode: "online"; "offline": records stay on disk until `noisescale sync`; "disabled": no hooks, no thread.
        project: Project of runs that name none.
        task: Task of runs that name none.
        run_id: The run to write to; several processes and resumed jobs share one. None: a new run.
        name: Name of the run; None: the server takes the first characters of its id.
        log_every: Updates per row sent.
        group_seconds: Least time between two records of layers, in seconds.
        strict: Errors inside a watched run are raised instead of counted. For tests.
        rank: Rank of this process in the job.
        folders: Where records wait on disk: the first of these that can be written to. None: in memory only.
        durability: Who writes them there: "direct", the caller; "async", a thread; "auto", the caller while the disk
            is local and quick.
        overflow: Which records are given up where those on disk pass 1 GiB a run: the oldest file, or what comes.
        kernels: What sums gradients up: "triton" where it works, "torch", or "auto": Triton on GPUs, where it works.
    """

    url: str = DEFAULT_URL
    api_key: str | None = field(default=None, repr=False)
    mode: str = "online"
    project: str = "default"
    task: str = "default"
    run_id: str | None = None
    name: str | None = None
    log_every: int = 1
    group_seconds: float = 10.0
    strict: bool = False
    rank: int = 0
    kernels: Kernels = "auto"
    folders: tuple[Path, ...] = ()
    durability: Durability = "auto"
    overflow: Overflow = "drop_oldest"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"mode must be one of {', '.join(MODES)}, got {self.mode!r}: set NOISESCALE_MODE=online")
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise ConfigError(f"url must look like {DEFAULT_URL}, got {self.url!r}: set NOISESCALE_URL")
        if self.log_every < 1:
            raise ConfigError(f"log_every must be at least 1 update, got {self.log_every}: set NOISESCALE_LOG_EVERY=1")
        if not self.group_seconds >= 0:
            raise ConfigError(f"group_seconds must be at least 0 s, got {self.group_seconds}: 10 is the default")
        if self.kernels not in KERNELS:
            known = ", ".join(KERNELS)
            raise ConfigError(f"kernels must be one of {known}, got {self.kernels!r}: set NOISESCALE_KERNELS=auto")
        if self.durability not in DURABILITIES:
            known = ", ".join(DURABILITIES)
            raise ConfigError(f"durability must be one of {known}, got {self.durability!r}: leave it out for 'auto'")
        if self.overflow not in OVERFLOWS:
            raise ConfigError(
                f"overflow must be one of {', '.join(OVERFLOWS)}, got {self.overflow!r}: leave it out for 'drop_oldest'"
            )
        if not self.project:
            raise ConfigError("project must not be empty: leave it out for 'default'")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **arguments: object) -> "Config":
        """Settings from arguments, then the environment, then defaults.

        Args:
            environ: Stands in for `os.environ`.
            arguments: Fields of `Config`; None means "not given".

        Raises:
            ConfigError: For a value outside its limits or an unknown field.
        """
        values = _from_environment(os.environ if environ is None else environ)
        values |= {name: value for name, value in arguments.items() if value is not None}
        values = _with_local_server(values, os.environ if environ is None else environ)
        unknown = sorted(set(values) - set(cls.__dataclass_fields__))
        if unknown:
            raise ConfigError(f"unknown setting {unknown[0]!r}: known are {', '.join(cls.__dataclass_fields__)}")
        if values.get("run_id") is not None:
            values["run_id"] = _uuid(values["run_id"])
        return replace(cls(), **values)  # type: ignore[arg-type]  # names checked above, values in __post_init__


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    texts = {"url", "api_key", "mode", "project", "task", "run_id", "name", "kernels", "durability", "overflow"}
    values: dict[str, object] = {
        name: environ[f"NOISESCALE_{name.upper()}"] for name in texts if environ.get(f"NOISESCALE_{name.upper()}")
    }
    numbers: dict[str, tuple[str, Callable[[str], float]]] = {
        "log_every": ("NOISESCALE_LOG_EVERY", int),
        "group_seconds": ("NOISESCALE_GROUP_SECONDS", float),
        "rank": ("RANK", int),
    }
    for name, (variable, kind) in numbers.items():
        if environ.get(variable):
            values[name] = _number(variable, environ[variable], kind)
    if environ.get("NOISESCALE_STRICT"):
        values["strict"] = environ["NOISESCALE_STRICT"].lower() not in ("0", "false", "no")
    values["folders"] = tuple(state_folders(environ))
    return values


def without_password(url: str) -> str:
    """The address of a server as it may be written to disk and shown, the way `meta.json` names it."""
    address = urlsplit(url)
    return address._replace(netloc=address.netloc.rpartition("@")[2]).geturl().rstrip("/")


def state_folders(environ: Mapping[str, str]) -> list[Path]:
    """Folders for records that wait, the best first; none where this user has no home."""
    without_own = {name: value for name, value in environ.items() if name != "NOISESCALE_DIR"}
    found = []
    for settings in (environ, without_own):
        with contextlib.suppress(RuntimeError):
            found.append(state_folder(settings))
    return list(dict.fromkeys(found))


def state_folder(environ: Mapping[str, str]) -> Path:
    """The folder where an embedded server of the same user says where it listens, and where records wait.

    Raises:
        RuntimeError: Where this user has no home.
    """
    if environ.get("NOISESCALE_DIR"):
        return Path(environ["NOISESCALE_DIR"])
    state_home = environ.get("XDG_STATE_HOME")
    return (Path(state_home) if state_home else Path.home() / ".local" / "state") / "noisescale"


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that this user has started on this machine, as it says itself in `server.json`."""

    url: str
    key: str | None = field(default=None, repr=False)


def local_server(environ: Mapping[str, str]) -> LocalServer | None:
    """What `server.json` says; None where there is none, and where it is not this user's own to write."""
    try:
        file = state_folder(environ) / "server.json"
        content = json.loads(file.read_text())
        # whoever else could write it would be sent this user's records
        is_own = not hasattr(os, "getuid") or (file.stat().st_uid == os.getuid() and not file.stat().st_mode & 0o022)
    except (OSError, ValueError, RuntimeError):  # no file, half written, or no home folder
        return None
    url, key = (content.get("url"), content.get("key")) if isinstance(content, dict) else (None, None)
    if not is_own or not isinstance(url, str) or not url:
        return None
    return LocalServer(url, key if isinstance(key, str) and key else None)


def _with_local_server(values: dict[str, object], environ: Mapping[str, str]) -> dict[str, object]:
    """The settings with the local server's address and key, where they name no other; its key goes nowhere else."""
    found = local_server(environ)
    url = values.get("url") or (DEFAULT_URL if found is None else found.url)
    is_that = found is not None and str(url).rstrip("/") == found.url and "api_key" not in values
    key: dict[str, object] = {"api_key": found.key} if is_that and found is not None and found.key else {}
    return {**values, "url": url, **key}


def _number(variable: str, text: str, kind: Callable[[str], float]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(f"{variable} must be a number, got {text!r}") from None


def _uuid(text: object) -> str:
    try:
        return str(UUID(str(text)))
    except ValueError:
        raise ConfigError(f"run_id must be a UUID, got {text!r}: make one with uuid.uuid4()") from None
