"""Answers of the REST API as dataclasses."""

from collections.abc import Mapping

from noisescale_dashboard.answers import server as server_answers
from noisescale_dashboard.api.questions.access import AccessQuestions
from noisescale_dashboard.api.questions.asking import API
from noisescale_dashboard.api.questions.planning import PlanQuestions
from noisescale_dashboard.api.questions.projects import ProjectQuestions
from noisescale_dashboard.api.questions.runs import RunQuestions
from noisescale_dashboard.api.questions.sweeps import SweepQuestions


class ApiClient(RunQuestions, SweepQuestions, PlanQuestions, ProjectQuestions, AccessQuestions):
    """Asks the API on behalf of one visitor at a time: `visitor` is the headers that came with the call."""

    async def ready(self, visitor: Mapping[str, str]) -> None:
        """Raise unless the API can answer."""
        await self._api.read(visitor, "/readyz")

    async def server(self, visitor: Mapping[str, str]) -> server_answers.Server:
        """Version and health of the server, and what the visitor's projects have stored."""
        return server_answers.server(await self._api.get(visitor, f"{API}/server"))
