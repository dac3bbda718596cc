"""One dashboard for all tests that leave it as it is: making one costs each 20 ms."""

import httpx
from starlette.types import Receive, Scope, Send

from fakes_api import FakeApi
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.app import create_app
from noisescale_dashboard.serving.settings import DashboardSettings


class SharedDashboard:
    """A dashboard that asks `asked`, the API of the test that runs.

    Args:
        raises: What the API raises is raised in the dashboard, too; otherwise it answers with an error, as servers do.
    """

    def __init__(self, *, raises: bool = True) -> None:
        self.asked: FakeApi | None = None
        transport = httpx.ASGITransport(app=self._ask, raise_app_exceptions=raises)
        self.app = create_app(DashboardSettings(), ApiClient(base_url="http://api", transport=transport))

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.asked is not None, "no test asks"
        await self.asked.app(scope, receive, send)
