"""From a measurement to the server: never blocking, never raising."""

from typing import TYPE_CHECKING

from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale.transport.disk_spool import DiskSpool
    from noisescale.transport.http import HttpServer
    from noisescale.transport.late_delivery import Outcome, adopt
    from noisescale.transport.spool import MemorySpool, Spool
    from noisescale.transport.stream import Stream
    from noisescale.transport.uploader import Uploader

_MODULES = {
    "DiskSpool": "noisescale.transport.disk_spool",
    "HttpServer": "noisescale.transport.http",
    "adopt": "noisescale.transport.late_delivery",
    "Outcome": "noisescale.transport.late_delivery",
    "MemorySpool": "noisescale.transport.spool",
    "Spool": "noisescale.transport.spool",
    "Stream": "noisescale.transport.stream",
    "Uploader": "noisescale.transport.uploader",
}

__getattr__, __dir__ = exports(__name__, _MODULES)

__all__ = ["DiskSpool", "HttpServer", "MemorySpool", "Outcome", "Spool", "Stream", "Uploader", "adopt"]
