"""`noisescale status`: which server this machine would send to, whether it answers, and what waits on disk."""

import argparse
import sys

from noisescale.config import Config
from noisescale.outbox import SPOOL
from noisescale.transport.http import HttpServer
from noisescale.transport.late_delivery import has_arrived
from noisescale.transport.left_behind import stream_folders
from noisescale.transport.stream_folder import StreamFolder
from noisescale.version import __version__
from noisescale_core.errors import ConfigError, TransportError


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("status", help="which server runs are sent to, and whether it answers")
    parser.add_argument("--url", help="ask this server instead of the configured one")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 when the server is ready; 1 when not; 2 for wrong settings."""
    try:
        config = Config.from_env(url=arguments.url)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"server   {config.url}")
    print(f"project  {config.project}")
    _print_waiting(config)
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        is_ready = server.is_ready()
    except TransportError as error:
        print(f"state    not reachable: {error}")
        print("to do    start one with `noisescale up`, or set NOISESCALE_URL to one that runs")
        return 1
    finally:
        server.close()
    if not is_ready:
        print("state    answers, but is not ready: its database may be starting; look at its log")
        return 1
    print(f"state    ready; runs appear at {config.url}")
    return 0


def _print_waiting(config: Config) -> None:
    """What jobs of this user have on disk that the server may lack."""
    for root in config.folders:
        waiting = [
            folder for folder in stream_folders(root / SPOOL) if not folder.has_moved and not _has_arrived(folder)
        ]
        num_running = sum(not folder.is_free() for folder in waiting)
        if waiting:
            print(
                f"on disk  {root / SPOOL}: {num_running} streams of running jobs, {len(waiting) - num_running} others"
            )
        if len(waiting) > num_running:
            print(f"to do    noisescale sync {root}")


def _has_arrived(folder: StreamFolder) -> bool:
    try:
        return has_arrived(folder)
    except OSError:
        return False
