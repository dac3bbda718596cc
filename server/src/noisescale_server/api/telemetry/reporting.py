"""Whether metrics are sent to a collector, which takes an extra that most servers do without."""

import contextlib
from collections.abc import AsyncIterator
from importlib import import_module
from types import ModuleType

from fastapi import FastAPI

from noisescale_server.process.settings import Settings


class ExtraMissing(ImportError):
    """An endpoint is set, and what sends to it is not installed."""


@contextlib.asynccontextmanager
async def reported(app: FastAPI, settings: Settings) -> AsyncIterator[None]:
    """For the block, send metrics to where the settings say; nowhere by default.

    Raises:
        ExtraMissing: Without the extra `otlp`.
    """
    if settings.otlp_endpoint is None:
        yield
        return
    async with sender().exported(app, endpoint=settings.otlp_endpoint, seconds=settings.otlp_seconds):
        yield


def sender() -> ModuleType:
    """The module that sends.

    Raises:
        ExtraMissing: Without the extra `otlp`.
    """
    try:
        return import_module("noisescale_server.api.telemetry.otlp")
    except ImportError as error:
        raise ExtraMissing(
            f"NOISESCALE_OTLP_ENDPOINT is set and {error.name} is not installed: pip install './server[otlp]'"
        ) from error
