"""What pages ask about who may do what: keys, people, the audit log."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from noisescale_dashboard.answers import access as access_answers
from noisescale_dashboard.api.questions.asking import API, Questions, checked_id
from noisescale_dashboard.api.transport import ApiProblem

GUESTS = (401, 403)
"""What the API answers to those whom it knows nothing of when they ask who they are."""


class AccessQuestions(Questions):
    """Keys, people, the audit log."""

    async def me(self, visitor: Mapping[str, str]) -> access_answers.Me:
        """Who is looking."""
        return access_answers.me(await self._api.get(visitor, f"{API}/me"))

    async def rights(self, visitor: Mapping[str, str], project: str) -> frozenset[str]:
        """What the visitor may do in the project; nothing that a guest may not, who has no login and no key.

        Raises:
            ApiProblem: When the API does not answer.
        """
        try:
            me = await self.me(visitor)
        except ApiProblem as problem:
            if problem.status in GUESTS:
                return frozenset()
            raise
        return me.everywhere.union(*(rights for name, rights in me.projects if name == project))

    async def keys(self, visitor: Mapping[str, str]) -> tuple[access_answers.Key, ...]:
        """API keys of the visitor, and of whom they manage."""
        return access_answers.keys(await self._api.get(visitor, f"{API}/keys"))

    async def make_key(self, visitor: Mapping[str, str], **fields: Any) -> access_answers.NewKey:
        """A new key: `name`, `scope`, `projects`, `days`."""
        return access_answers.new_key(await self._api.send("POST", visitor, f"{API}/keys", fields))

    async def rotate_key(self, visitor: Mapping[str, str], key_id: str) -> access_answers.NewKey:
        """The successor of a key."""
        path = f"{API}/keys/{quote(key_id, safe='')}/rotation"
        return access_answers.new_key(await self._api.send("POST", visitor, path, None))

    async def revoke_key(self, visitor: Mapping[str, str], key_id: str) -> None:
        """End a key."""
        await self._api.send("DELETE", visitor, f"{API}/keys/{quote(key_id, safe='')}", None)

    async def people(self, visitor: Mapping[str, str]) -> tuple[access_answers.Person, ...]:
        """The people that the visitor manages."""
        return access_answers.people(await self._api.get(visitor, f"{API}/people"))

    async def set_role(self, visitor: Mapping[str, str], project: str, person_id: str, role: str | None) -> None:
        """Make somebody viewer, member or admin of a project; None takes them out."""
        path = f"{API}/projects/{quote(project, safe='')}/members/{checked_id(person_id, 'person')}"
        await self._api.send(
            "DELETE" if role is None else "PUT", visitor, path, None if role is None else {"role": role}
        )

    async def add_person(
        self, visitor: Mapping[str, str], *, name: str, email: str | None, is_administrator: bool
    ) -> str:
        """The id of somebody new, who logs in by a one-time link."""
        fields = {"name": name, "email": email, "is_administrator": is_administrator}
        return str((await self._api.send("POST", visitor, f"{API}/people", fields))["id"])

    async def change_person(self, visitor: Mapping[str, str], person_id: str, **fields: bool) -> None:
        """Change whether a person `is_administrator` of all projects, or `is_disabled`."""
        await self._api.send("PATCH", visitor, f"{API}/people/{checked_id(person_id, 'person')}", fields)

    async def make_login_link(self, visitor: Mapping[str, str], person_id: str) -> str:
        """A link that logs a person in once, within the hour."""
        path = f"{API}/people/{checked_id(person_id, 'person')}/login-links"
        return str((await self._api.send("POST", visitor, path, None))["url"])

    async def log_out_everywhere(self, visitor: Mapping[str, str], person_id: str) -> None:
        """End every login of a person."""
        await self._api.send("DELETE", visitor, f"{API}/people/{checked_id(person_id, 'person')}/sessions", None)

    async def audit(self, visitor: Mapping[str, str], *, limit: int) -> tuple[access_answers.AuditEntry, ...]:
        """What was done about access, newest first."""
        return access_answers.audit(await self._api.get(visitor, f"{API}/audit", {"limit": limit}))
