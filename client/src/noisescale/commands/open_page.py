"""`noisescale open RUN`: a run's page in the browser."""

import argparse
import webbrowser

from noisescale.commands.on_server import add_url, ask_server
from noisescale.commands.terminal import tell
from noisescale.config import without_password
from noisescale.stored.api import Api
from noisescale.stored.finding import StoredRun, find_run


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("open", help="open a run's page in the browser")
    parser.add_argument("run_name", metavar="RUN", help="its name or id, or the beginning of either")
    add_url(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 with the address printed, whether or not there is a browser here; 1 without such a run; 2: wrong settings."""
    return ask_server("open", arguments.url, lambda api: _open(api, arguments.run_name))


def _open(api: Api, said: str) -> int:
    address = page_of(api, find_run(api, said))
    tell(address)
    if not webbrowser.open(address):
        tell("No browser can be opened from here: open the address where there is one.")
    return 0


def page_of(api: Api, run: StoredRun) -> str:
    """The address of a run's page.

    Args:
        api: Where it is stored.
        run: As the server gives it.
    """
    return f"{without_password(api.url)}/runs/{run['id']}"
