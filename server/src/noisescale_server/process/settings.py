"""Every setting of the server process: read once from the environment at the edge, then handed to `create_app`."""

from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_data_path
from pydantic import AfterValidator, Field, IPvAnyNetwork, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from noisescale_server.embedded.privileges import is_root

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE


def default_data_dir() -> Path:
    """The user's own data folder, never a folder of the repository.

    Root's home is closed to the unprivileged user that Postgres runs as, so root has the usual place of a service.
    """
    if is_root():
        return Path("/var/lib/noisescale")
    return user_data_path("noisescale", appauthor=False)


class Settings(BaseSettings):
    """Settings from `NOISESCALE_...` environment variables; arguments win over them."""

    model_config = SettingsConfigDict(env_prefix="NOISESCALE_", extra="forbid", frozen=True)

    database_url: str | None = Field(
        None, description="Postgres 15+ address; without it the embedded Postgres is started"
    )
    migration_database_url: str | None = Field(
        None, description="the same database as the owner of its tables, for migrations alone; default: database_url"
    )
    database_read_url: str | None = Field(
        None, description="a streaming replica that answers reads; default: database_url"
    )
    allow_unsafe_database: bool = Field(
        False, description="serve on a Postgres that may lose committed rows in a crash; for test clusters only"
    )
    data_dir: Path = Field(default_factory=default_data_dir, description="where the embedded Postgres keeps its data")
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8321
    workers: Annotated[int, Field(ge=1, le=256)] = 1

    auth: Literal["local", "required"] = Field(
        "local", description="local: one user on this machine; required: a team's server, with keys and logins"
    )
    local_token: SecretStr | None = Field(
        None, min_length=32, description="key of the local user; default: a new one every start"
    )
    secret_key: SecretStr | None = Field(
        None, description="at least 32 bytes; with it digests of keys are made, which are worthless without it"
    )
    public_url: str | None = Field(None, description="https address at which browsers find a team's server")
    behind_tls_proxy: bool = Field(False, description="a proxy in front of a team's server ends TLS")
    tls_certificate: Path | None = Field(None, description="PEM file, where the server itself ends TLS")
    tls_key: Path | None = Field(None, description="PEM file with the certificate's key")
    trusted_proxies: list[IPvAnyNetwork] = Field([], description="JSON list of networks whose login header is believed")
    proxy_user_header: str | None = Field(None, description="header in which a trusted proxy names who has logged in")
    oidc_issuer: str | None = Field(None, description="address of the organisation's OpenID Connect provider")
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None

    pool_size: Annotated[int, Field(ge=1, le=1_000)] = 10
    pool_max_overflow: Annotated[int, Field(ge=0, le=1_000)] = 10
    pool_wait_seconds: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 3.0
    statement_timeout_seconds: Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)] = 5.0

    max_body_bytes: Annotated[int, Field(ge=KIBIBYTE)] = 5 * MEBIBYTE
    max_inflated_body_bytes: Annotated[int, Field(ge=KIBIBYTE)] = 16 * MEBIBYTE

    batches_per_minute: Annotated[int, Field(ge=1)] = 60_000
    reads_per_minute: Annotated[int, Field(ge=1)] = 3_000

    metrics_runs: Annotated[
        int, Field(ge=0, le=1_000, description="live runs with figures of their own in /metrics: the newest")
    ] = 50

    metrics_port: Annotated[int, Field(ge=1, le=65_535)] | None = Field(
        None, description="a port of 127.0.0.1 that answers /metrics without a key, to every user of this machine"
    )
    public_projects: bool = Field(
        False, description="admins of a project may open it to everybody, to read without a login"
    )
    alert_hosts: list[Annotated[str, AfterValidator(str.lower)]] = Field(
        [], description="JSON list of host names and addresses that alerts may go to wherever they are, by http too"
    )
    alert_events_days: Annotated[
        float, Field(ge=2, le=36_500, allow_inf_nan=False, description="how long what rules have noticed is kept")
    ] = 365.0
    otlp_endpoint: str | None = Field(
        None, description="where metrics are sent in OTLP over HTTP, https://collector:4318/v1/metrics; the extra otlp"
    )
    otlp_seconds: Annotated[float, Field(ge=1, le=3_600, allow_inf_nan=False)] = 60.0

    gather_sweeps: bool = Field(True, description="finished runs that differ by batch and rate alone make a sweep")

    silent_after_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    crashed_after_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 600.0
