"""What a server must have before it listens: the mode that its address asks for, and in a team's mode everything."""

from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.process.settings import Settings
from noisescale_server.storage.access import people

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
MIN_SECRET_BYTES: Final = 32
MIN_DIFFERENT_BYTES: Final = 10
"""Fewer are a word typed over and over, or a run of zeros."""
HOW_TO_MAKE_ONE: Final = "python -c 'import secrets; print(secrets.token_urlsafe(48))'"


class StartRefused(RuntimeError):
    """The server does not start like this; the sentence says what to do."""


def check(settings: Settings) -> None:
    """Raise unless the server may listen where it is told to.

    Raises:
        StartRefused: Says what is missing, and how to mend it.
    """
    _check_databases(settings)
    if settings.auth == "local":
        _check_local(settings)
    else:
        _check_team(settings)


async def check_admin(session: AsyncSession, settings: Settings) -> None:
    """Raise unless somebody can let others in.

    Raises:
        StartRefused: For a team's server without an admin.
    """
    if settings.auth == "required" and not await people.has_administrator(session):
        raise StartRefused(
            "a team's server needs an admin: run `noisescale keys create-admin NAME` once, on the same database"
        )


def _check_databases(settings: Settings) -> None:
    for name in ("database_url", "migration_database_url", "database_read_url"):
        address = getattr(settings, name)
        if address is not None and not _is_postgres(address):
            # the address is not repeated: it may hold a password
            raise StartRefused(
                f"NOISESCALE_{name.upper()} is no address of a Postgres: "
                "write postgresql://USER:PASSWORD@HOST:5432/NAME, or leave it out"
            )


def _is_postgres(address: str) -> bool:
    try:
        return make_url(address).get_backend_name() == "postgresql"
    except (ArgumentError, ValueError):
        return False


def _check_local(settings: Settings) -> None:
    if settings.host not in LOOPBACK:
        raise StartRefused(
            f"listening on {settings.host} lets others in, and NOISESCALE_AUTH is local: set NOISESCALE_AUTH=required "
            "and what docs/access.md lists, or leave out --host"
        )
    for name in ("public_url", "behind_tls_proxy", "proxy_user_header", "oidc_issuer"):
        if getattr(settings, name):
            raise StartRefused(
                f"NOISESCALE_{name.upper()} is for a team's server, and NOISESCALE_AUTH is local: "
                "set NOISESCALE_AUTH=required, or leave it out"
            )


def _check_team(settings: Settings) -> None:
    _check_secret(settings)
    _check_address(settings)
    if settings.proxy_user_header is not None and not settings.trusted_proxies:
        raise StartRefused(
            "NOISESCALE_PROXY_USER_HEADER without NOISESCALE_TRUSTED_PROXIES would let anybody be anybody: "
            'name the networks of the proxies, as ["10.0.0.2/32"]'
        )
    oidc = {name: getattr(settings, name) for name in ("oidc_issuer", "oidc_client_id", "oidc_client_secret")}
    missing = [f"NOISESCALE_{name.upper()}" for name, value in oidc.items() if not value]
    if missing and len(missing) < len(oidc):
        raise StartRefused(f"the organisation's login needs {' and '.join(missing)} too")


def _check_secret(settings: Settings) -> None:
    secret = b"" if settings.secret_key is None else settings.secret_key.get_secret_value().encode()
    if len(secret) < MIN_SECRET_BYTES:
        raise StartRefused(
            f"NOISESCALE_SECRET_KEY has {len(secret)} bytes, a team's server needs at least {MIN_SECRET_BYTES}: "
            f"make one with {HOW_TO_MAKE_ONE}, and keep it out of the repository"
        )
    if len(set(secret)) < MIN_DIFFERENT_BYTES:
        raise StartRefused(f"NOISESCALE_SECRET_KEY can be guessed: make one with {HOW_TO_MAKE_ONE}")


def _check_address(settings: Settings) -> None:
    parts = urlsplit(settings.public_url or "")
    if parts.scheme != "https" or not parts.hostname or parts.path not in ("", "/"):
        raise StartRefused(
            f"NOISESCALE_PUBLIC_URL is {settings.public_url!r}, and a team's server needs the https address at which "
            "browsers find it, without a path: https://noisescale.example.com"
        )
    has_own = settings.tls_certificate is not None and settings.tls_key is not None
    if not has_own and not settings.behind_tls_proxy:
        raise StartRefused(
            "nothing encrypts what comes in: set NOISESCALE_TLS_CERTIFICATE and NOISESCALE_TLS_KEY, or "
            "--behind-tls-proxy where a proxy in front of this server ends TLS"
        )
    for path in (settings.tls_certificate, settings.tls_key):
        if path is not None and not path.is_file():
            raise StartRefused(
                f"{path} cannot be read: NOISESCALE_TLS_CERTIFICATE and NOISESCALE_TLS_KEY are PEM files"
            )
