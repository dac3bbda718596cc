"""What a server for one user makes for itself: the token of this start, and a secret that outlives it."""

import contextlib
import os
import secrets
from collections.abc import Mapping

from pydantic import SecretStr

from noisescale_server.process.discovery import state_folder
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import key_text

SECRET_FILE = "secret"  # noqa: S105
SECRET_BYTES = 48


def complete(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """The settings with what a local server lacks; a team's are as they were.

    Raises:
        OSError: When the file of the secret can be neither made nor read.
    """
    if settings.auth != "local":
        return settings
    token = settings.local_token or SecretStr(key_text.new("admin").text)
    return settings.model_copy(update={"local_token": token, "secret_key": secret_key(settings, environment)})


def secret_key(settings: Settings, environment: Mapping[str, str]) -> SecretStr:
    """The secret of the settings, else of a file that only this user reads; the file is made when there is none.

    Raises:
        OSError: When the file can be neither made nor read.
    """
    if settings.secret_key is not None:
        return settings.secret_key
    folder = state_folder(environment)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / SECRET_FILE
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as output:
            output.write(secrets.token_urlsafe(SECRET_BYTES))
    return SecretStr(file.read_text(encoding="ascii").strip())
