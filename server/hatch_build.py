"""Puts the migrations into the package: in a checkout they lie next to the distributions, in an sdist at its top."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "migrations"


class Migrations(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the folder to what is built; an editable install reads the checkout's own."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folder and its place."""
        root = Path(self.root)
        is_an_sdist = (root / "PKG-INFO").is_file()
        if self.target_name == "wheel" and version != "editable":
            source = root / FOLDER if is_an_sdist else root.parent / FOLDER
            build_data["force_include"][str(source)] = "noisescale_server/_migrations"
        elif self.target_name == "sdist" and not is_an_sdist:
            build_data["force_include"][str(root.parent / FOLDER)] = FOLDER
