"""What commands that ask a server have in common: which one, and what they say where it does not answer."""

import argparse
import sys
from collections.abc import Callable

from noisescale.config import Config
from noisescale.stored.api import Api, Refused
from noisescale.stored.finding import NotFound
from noisescale_core.errors import ConfigError, TransportError

TO_DO = "start a server with `noisescale up`, or set NOISESCALE_URL to one that runs"


def add_url(parser: argparse.ArgumentParser) -> None:
    """Add the option that names another server than the configured one."""
    parser.add_argument("--url", help="ask this server instead of the configured one")


def ask_server(command: str, url: str | None, ask: Callable[[Api], int]) -> int:
    """The exit status of a command that asks a server: 1 with a sentence where it has no answer; 2: wrong settings.

    Args:
        command: Its name, for the sentence.
        url: As given on the command line; None: the configured server.
        ask: Asks and prints.
    """
    try:
        api = Api.of(Config.from_env(url=url))
        try:
            return ask(api)
        finally:
            api.close()
    except ConfigError as error:
        return _said(command, error, 2)
    except TransportError as error:
        return _said(command, f"{error}; {TO_DO}", 1)
    except (Refused, NotFound) as error:
        return _said(command, error, 1)
    except KeyboardInterrupt:
        return _said(command, "interrupted", 1)


def _said(command: str, message: object, status: int) -> int:
    print(f"noisescale {command}: {message}", file=sys.stderr)
    return status
