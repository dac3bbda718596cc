"""`noisescale status`: which server this machine would send to, whether it answers, and what waits on disk."""

import argparse

from noisescale.commands.waiting import waiting
from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import TransportError


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("status", help="which server runs are sent to, and whether it answers")
    parser.add_argument("--url", help="ask this server instead of the configured one")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 when the server is ready, takes the key, and no records are stuck; 1 when not; 2 for wrong settings."""
    config = Config.from_env(url=arguments.url)
    print(f"server   {config.url}")
    print(f"project  {config.project}")
    found = waiting(config)
    for line in (line for one in found for line in one.lines()):
        print(line)
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        is_ready = server.is_ready()
        is_refused = is_ready and server.refuses_key()
    except TransportError as error:
        print(f"state    not reachable: {error}")
        print("to do    start one with `noisescale up`, or set NOISESCALE_URL to one that runs")
        return 1
    finally:
        server.close()
    if not is_ready:
        print("state    answers, but is not ready: its database may be starting; look at its log")
        return 1
    if is_refused:
        print(f"state    the server is ready at {config.url}, but refuses this key")
        print("to do    make a key on its page Settings, and set NOISESCALE_API_KEY")
        return 1
    if any(one.is_bad for one in found):
        print(f"state    the server is ready at {config.url}, but records have not reached it: see above")
        return 1
    if any(one.others for one in found):
        print(f"state    the server is ready at {config.url}; what waits on disk was not sent to it yet: see above")
        return 0
    print(f"state    ready; runs appear at {config.url}")
    return 0
