"""What a campaign found, stored on the server: once, however often the same command runs."""

from collections.abc import Mapping
from typing import Literal

from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import TransportError


def store_findings(
    config: Config,
    found: Mapping[str, object],
    *,
    kind: Literal["claim", "advice"],
    effort: str,
    seed: int,
) -> str:
    """Where the dashboard shows it, or why it is not stored, in words.

    Args:
        config: Address, key and project.
        found: Summary of the claim, or of the advice.
        kind: Which of both.
        effort: "quick" or "full".
        seed: The first of the seeds.
    """
    body = {"project": config.project, "effort": effort, "seed": seed, "version": __version__, kind: found}
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        answer = server.request("POST", "/api/v1/reproductions", body)
    except TransportError as error:
        return f"Not stored on the server, the same command tries again: {error}"
    finally:
        server.close()
    if answer.status >= 300:
        return f"Not stored on the server: {answer.body.get('detail', answer.status)}"
    return f"In the dashboard: {config.url.rstrip('/')}/reproduce/{answer.body['id']}"
