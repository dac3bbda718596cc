"""Bringing a database to the newest schema."""

from pathlib import Path

from alembic import command
from alembic.config import Config

_PACKAGE = Path(__file__).parents[1]
_IN_THE_WHEEL = _PACKAGE / "_migrations"
_IN_THE_CHECKOUT = _PACKAGE.parents[2] / "migrations"


def migrations_folder() -> Path:
    """The folder with `env.py` and the versions: inside an installed package, or beside `server/` in a checkout.

    Raises FileNotFoundError when the installation has neither.
    """
    for folder in (_IN_THE_WHEEL, _IN_THE_CHECKOUT):
        if (folder / "env.py").is_file():
            return folder
    raise FileNotFoundError(
        f"no migrations in {_IN_THE_WHEEL} nor in {_IN_THE_CHECKOUT}: install noisescale-server again"
    )


def migrate(database_url: str, *, revision: str = "head") -> None:
    """Run every migration up to a revision that the database has not seen."""
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", database_url.replace("%", "%%"))  # configparser reads % as a reference
    command.upgrade(config, revision)
