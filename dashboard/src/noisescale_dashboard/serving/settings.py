"""Where the dashboard finds the API."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class DashboardSettings(BaseSettings):
    """Settings of one dashboard process; each is read from `NOISESCALE_DASHBOARD_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="NOISESCALE_DASHBOARD_", extra="ignore")

    api_url: str | None = None
    """Address of an API in another process; None: the API the dashboard is mounted on."""
    api_timeout_seconds: float = 10.0
    refresh_seconds: float = 5.0
    """How often a page of a running run asks for news while its tab is visible."""
