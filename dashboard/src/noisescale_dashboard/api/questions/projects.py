"""What pages ask about a project: what it assumes, how it is kept, its alerts and the views that it shares."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from noisescale_dashboard.answers import comments as comment_answers
from noisescale_dashboard.answers import projects as project_answers
from noisescale_dashboard.api.questions.asking import API, Questions, checked_id
from noisescale_dashboard.api.transport import ApiProblem


class ProjectQuestions(Questions):
    """A project's settings, alerts and shared views."""

    async def project_defaults(self, visitor: Mapping[str, str], project: str) -> project_answers.ProjectDefaults:
        """What the project assumes of prices."""
        path = f"{API}/projects/{quote(project, safe='')}/defaults"
        return project_answers.project_defaults(await self._api.get(visitor, path))

    async def set_project_defaults(
        self, visitor: Mapping[str, str], project: str, fields: Mapping[str, Any]
    ) -> project_answers.ProjectDefaults:
        """Let the project assume exactly this."""
        path = f"{API}/projects/{quote(project, safe='')}/defaults"
        return project_answers.project_defaults(await self._api.send("PUT", visitor, path, dict(fields)))

    async def keeping(self, visitor: Mapping[str, str], project: str) -> project_answers.Keeping:
        """How the project is kept and shared."""
        path = f"{API}/projects/{quote(project, safe='')}"
        retention = await self._api.get(visitor, f"{path}/retention")
        return project_answers.keeping(retention, await self._api.get(visitor, f"{path}/public"))

    async def keep(
        self, visitor: Mapping[str, str], project: str, *, days: float | str | None, is_public: bool
    ) -> project_answers.Keeping:
        """Let the project be kept and shared so."""
        path = f"{API}/projects/{quote(project, safe='')}"
        retention = await self._api.send("PUT", visitor, f"{path}/retention", {"fold_after_days": days})
        public = await self._api.send("PUT", visitor, f"{path}/public", {"is_public": is_public})
        return project_answers.keeping(retention, public)

    async def alerts(self, visitor: Mapping[str, str], project: str) -> project_answers.Alerts:
        """Rules, receivers and newest events of a project."""
        at = _alerts(project)
        found = [await self._api.get(visitor, f"{at}/{name}") for name in ("rules", "receivers", "events")]
        return project_answers.alerts(*found)

    async def alert_dry_run(self, visitor: Mapping[str, str], project: str, rule: Mapping[str, Any]) -> str:
        """What a rule would have told of last week, as a sentence."""
        found = await self._api.send("POST", visitor, f"{_alerts(project)}/dry-run", {"rule": dict(rule)})
        return str(found["text"])

    async def add_alert_rule(self, visitor: Mapping[str, str], project: str, rule: Mapping[str, Any]) -> None:
        """Watch for something in a project."""
        await self._api.send("POST", visitor, f"{_alerts(project)}/rules", dict(rule))

    async def alert_rule(self, visitor: Mapping[str, str], project: str, rule_id: str) -> project_answers.AlertRule:
        """One of the project's rules.

        Raises:
            ApiProblem: Where there is none of this id.
        """
        found = await self.alerts(visitor, project)
        rule = next((one for one in found.rules if one.id == rule_id), None)
        if rule is None:
            path = f"{_alerts(project)}/rules"
            raise ApiProblem(path, 404, "No such rule", "The rule is not there any more: load the page again.")
        return rule

    async def change_alert_rule(
        self, visitor: Mapping[str, str], project: str, rule_id: str, rule: Mapping[str, Any]
    ) -> None:
        """Let a rule be exactly this."""
        await self._api.send("PUT", visitor, f"{_alerts(project)}/rules/{checked_id(rule_id, 'rule')}", dict(rule))

    async def test_alert_receiver(self, visitor: Mapping[str, str], project: str, receiver_id: str) -> None:
        """Send a receiver a test."""
        path = f"{_alerts(project)}/receivers/{checked_id(receiver_id, 'receiver')}/test"
        await self._api.send("POST", visitor, path, None)

    async def delete_alert_receiver(self, visitor: Mapping[str, str], project: str, receiver_id: str) -> None:
        """Tell somebody no more."""
        path = f"{_alerts(project)}/receivers/{checked_id(receiver_id, 'receiver')}"
        await self._api.send("DELETE", visitor, path, None)

    async def delete_alert_rule(self, visitor: Mapping[str, str], project: str, rule_id: str) -> None:
        """Watch for it no more."""
        await self._api.send("DELETE", visitor, f"{_alerts(project)}/rules/{checked_id(rule_id, 'rule')}", None)

    async def add_alert_receiver(self, visitor: Mapping[str, str], project: str, fields: Mapping[str, Any]) -> str:
        """The secret of a new receiver's signatures."""
        return str((await self._api.send("POST", visitor, f"{_alerts(project)}/receivers", dict(fields)))["secret"])

    async def tells_of_mentions(self, visitor: Mapping[str, str], project: str) -> bool:
        """Whether a comment that mentions somebody is sent to anybody."""
        found = await self.alerts(visitor, project)
        return bool(found.receivers) and any(rule.kind == "mentioned" for rule in found.rules)

    async def baseline(self, visitor: Mapping[str, str], project: str) -> comment_answers.Baseline | None:
        """The run that others of the project are compared to."""
        return comment_answers.baseline(await self._api.get(visitor, _baseline(project)))

    async def pin_baseline(self, visitor: Mapping[str, str], project: str, run_id: str) -> None:
        """Let others of the project be compared to this run."""
        await self._api.send("PUT", visitor, _baseline(project), {"run_id": run_id})

    async def unpin_baseline(self, visitor: Mapping[str, str], project: str) -> None:
        """Let the project have no baseline."""
        await self._api.send("DELETE", visitor, _baseline(project), None)

    async def shared_views(self, visitor: Mapping[str, str], project: str) -> tuple[project_answers.SharedView, ...]:
        """The views that a project's team shares, by name."""
        return project_answers.shared_views(await self._api.get(visitor, _views(project)))

    async def share_view(self, visitor: Mapping[str, str], project: str, **fields: str) -> None:
        """Share what a page shows: `name`, `page`, `query`."""
        await self._api.send("POST", visitor, _views(project), fields)

    async def rename_shared_view(self, visitor: Mapping[str, str], project: str, view_id: str, name: str) -> None:
        """Give a shared view another name."""
        await self._api.send("PATCH", visitor, f"{_views(project)}/{checked_id(view_id, 'view')}", {"name": name})

    async def delete_shared_view(self, visitor: Mapping[str, str], project: str, view_id: str) -> None:
        """Share a view no more."""
        await self._api.send("DELETE", visitor, f"{_views(project)}/{checked_id(view_id, 'view')}", None)


def _baseline(project: str) -> str:
    return f"{API}/projects/{quote(project, safe='')}/baseline"


def _views(project: str) -> str:
    return f"{API}/projects/{quote(project, safe='')}/views"


def _alerts(project: str) -> str:
    return f"{API}/projects/{quote(project, safe='')}/alerts"
