"""`noisescale mcp`: runs, noise scales and recommendations for an assistant with tools."""

import argparse
import importlib
import importlib.util
import sys
from functools import partial

from noisescale.config import Config

INSTALL = "in a checkout of noisescale, pip install './client[mcp]'"
SERVING = "noisescale.agents.server"
"""Loaded when it is asked for: it takes half a second, and a library that a training job has no use for."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "mcp",
        help="serve assistants by the Model Context Protocol: docs/agents.md",
        description="Speaks on standard input and output, with this user's key; reads only, unless told otherwise.",
    )
    parser.add_argument(
        "--http",
        type=_port,
        metavar="PORT",
        help="instead, streamable HTTP at http://127.0.0.1:PORT/mcp, where each request brings its own key",
    )
    parser.add_argument(
        "--allow-changes", action="store_true", help="also tools that rename, tag and annotate runs and make sweeps"
    )
    parser.add_argument("--url", help="ask this server instead of the configured one")
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"must be a port from 1 to 65535, got {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """0 after the last request; 2 where the library is not installed, and for wrong settings."""
    if importlib.util.find_spec("mcp") is None:
        print(f"noisescale mcp needs the library of the protocol, which is not installed: {INSTALL}", file=sys.stderr)
        return 2
    read = partial(Config.from_env, url=arguments.url)
    read()  # what is wrong is said at once
    serving = importlib.import_module(SERVING)
    try:
        if arguments.http is None:
            serving.serve_stdio(read, allows_changes=arguments.allow_changes)
        else:
            serving.serve_http(read, port=arguments.http, allows_changes=arguments.allow_changes)
    except KeyboardInterrupt:
        print("noisescale mcp: interrupted", file=sys.stderr)
    return 0
