"""Which Chromium the browser tests drive, and how it is started."""

import os
import shutil

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def path() -> str:
    """NOISESCALE_CHROMIUM, else the first Chromium or Chrome on the path."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("NOISESCALE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    assert found, f"no browser: install one of {', '.join(names)}, or name it in NOISESCALE_CHROMIUM"
    return found
