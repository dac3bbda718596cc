"""What can go wrong in the product's own terms; `api/platform/errors.py` gives each its HTTP status.

DomainError
├── NotFound
│   ├── RunNotFound
│   ├── StreamNotFound
│   ├── LayerNotFound            a `group` that no record of the run names
│   ├── SweepNotFound
│   ├── ReproductionNotFound
│   ├── ProjectNotFound
│   ├── TaskNotFound
│   ├── KeyNotFound
│   ├── AlertRuleNotFound
│   ├── ViewNotFound
│   ├── CommentNotFound
│   ├── LinkNotFound
│   ├── AlertReceiverNotFound
│   └── PersonNotFound
├── NotAuthenticated             nobody has said who asks, or not truly
├── NotAllowed                   known, and not allowed this
├── Conflict
│   ├── RunIdTaken               the id belongs to a run of another project
│   ├── SweepIdTaken             the id belongs to a sweep of another project or kind
│   ├── StreamGap                records are missing before this batch; says which number is expected
│   ├── StreamConflict           the same numbers came with other content, or for another run
│   ├── TooManyStreams           the run has as many as a run may have
│   ├── TooManyKeys              some have to be revoked first
│   └── LastAdministrator        nobody would be left who can let others in
├── RunDeleted                   what a job still sends of it is not wanted
├── InvalidInput                 says which fields, and why
├── DatabaseUnreachable          the caller may try again
├── DatabaseNotDurable           it may forget what it has committed
└── SchemaOutdated               a migration of this release has not run
"""

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One refused field: its path (`measurements.step[3]`), why, and a short printable form of the value."""

    field: str
    message: str
    value: str | None = None


class DomainError(Exception):
    """The root; `str(error)` is a sentence for the caller."""

    members: ClassVar[tuple[str, ...]] = ()
    """Attributes that the answer carries beside the sentence."""

    retry_after_seconds: int | None = None
    """When the same request may succeed; None where it will not by itself."""


class NotFound(DomainError):
    """Something named by the caller does not exist."""


class RunNotFound(NotFound):
    """No run has this id."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__(f"no run has the id {run_id}: list them with GET /api/v1/runs, or create it")
        self.run_id = run_id


class StreamNotFound(NotFound):
    """No stream has this id."""

    def __init__(self, stream_id: UUID) -> None:
        super().__init__(f"no stream has the id {stream_id}: its first batch creates it")
        self.stream_id = stream_id


class LayerNotFound(NotFound):
    """No group record of the run names this layer."""

    def __init__(self, run_id: UUID, name: str) -> None:
        super().__init__(f"run {run_id} has no layer named {name!r}: see GET /api/v1/runs/{run_id}/groups")
        self.run_id = run_id
        self.name = name


class SweepNotFound(NotFound):
    """No sweep has this id."""

    def __init__(self, sweep_id: UUID) -> None:
        super().__init__(f"no sweep has the id {sweep_id}: list them with GET /api/v1/sweeps, or create it")
        self.sweep_id = sweep_id


class ReproductionNotFound(NotFound):
    """No reproduction has this id."""

    def __init__(self, reproduction_id: UUID) -> None:
        super().__init__(f"no reproduction has the id {reproduction_id}: list them with GET /api/v1/reproductions")
        self.reproduction_id = reproduction_id


class ProjectNotFound(NotFound):
    """No project has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no project has the name {name!r}: list them with GET /api/v1/projects")
        self.name = name


class TaskNotFound(NotFound):
    """No task has this name in this project."""

    def __init__(self, project: str, name: str) -> None:
        super().__init__(f"project {project!r} has no task {name!r}: list them with GET /api/v1/projects/…/tasks")
        self.project = project
        self.name = name


class KeyNotFound(NotFound):
    """No key has this id, or not for whoever asks."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"no key in force has the id {key_id!r}: list them with GET /api/v1/keys")
        self.key_id = key_id


class AlertRuleNotFound(NotFound):
    """The project has no rule of this id."""

    def __init__(self, rule_id: UUID) -> None:
        super().__init__(f"no rule has the id {rule_id}: list them with GET /api/v1/projects/…/alerts/rules")
        self.rule_id = rule_id


class ViewNotFound(NotFound):
    """The project shares no view of this id."""

    def __init__(self, view_id: UUID) -> None:
        super().__init__(f"no view has the id {view_id}: list them with GET /api/v1/projects/…/views")
        self.view_id = view_id


class CommentNotFound(NotFound):
    """The run has no comment of this id."""

    def __init__(self, comment_id: UUID) -> None:
        super().__init__(f"no comment has the id {comment_id}: list them with GET /api/v1/runs/…/comments")
        self.comment_id = comment_id


class LinkNotFound(NotFound):
    """The run has no link of this id."""

    def __init__(self, link_id: UUID) -> None:
        super().__init__(f"no link has the id {link_id}: list them with GET /api/v1/runs/…/links")
        self.link_id = link_id


class AlertReceiverNotFound(NotFound):
    """The project has no receiver of this id."""

    def __init__(self, receiver_id: UUID) -> None:
        super().__init__(
            f"no receiver has the id {receiver_id}: list them with GET /api/v1/projects/…/alerts/receivers"
        )
        self.receiver_id = receiver_id


class PersonNotFound(NotFound):
    """Nobody has this id, or not where it was looked for."""

    def __init__(self, person_id: UUID) -> None:
        super().__init__(f"nobody has the id {person_id}: list people with GET /api/v1/people")
        self.person_id = person_id


class NotAuthenticated(DomainError):
    """Nobody has said who asks, or not truly; which of the two is not told."""

    def __init__(self) -> None:
        super().__init__(
            "this needs a key or a login: send `Authorization: Bearer <key>` (NOISESCALE_API_KEY for the client), "
            "or open /login in a browser"
        )


class NotAllowed(DomainError):
    """Whoever asks is known and may not do this."""


class Conflict(DomainError):
    """The request contradicts what is stored."""


class RunIdTaken(Conflict):
    """A run of another project has this id; which one is not told."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__(f"the id {run_id} is taken by a run of another project: create the run with a new id")
        self.run_id = run_id


class SweepIdTaken(Conflict):
    """A sweep of another project or kind has this id; which one is not told."""

    def __init__(self, sweep_id: UUID) -> None:
        super().__init__(f"the id {sweep_id} is taken by another sweep: create this one with a new id")
        self.sweep_id = sweep_id


class StreamGap(Conflict):
    """Records are missing before this batch."""

    members = ("expected_seq", "epoch", "database_id")

    def __init__(self, stream_id: UUID, *, expected_seq: int, first_seq: int, epoch: UUID, database_id: UUID) -> None:
        super().__init__(
            f"stream {stream_id} expects record {expected_seq} next, got a batch that starts at {first_seq}: "
            f"send again from {expected_seq}, and declare lost what is no longer held"
        )
        self.stream_id = stream_id
        self.expected_seq = expected_seq
        self.first_seq = first_seq
        self.epoch = str(epoch)
        self.database_id = str(database_id)


class StreamConflict(Conflict):
    """The same record numbers came with other content, or the stream belongs to another run."""

    def __init__(self, stream_id: UUID, reason: str) -> None:
        super().__init__(f"stream {stream_id}: {reason}: start a new stream")
        self.stream_id = stream_id


class TooManyStreams(Conflict):
    """The run has as many streams as a run may have."""

    def __init__(self, run_id: UUID, at_most: int) -> None:
        super().__init__(f"run {run_id} has {at_most:,} streams, and may have no more: log to a new run")
        self.run_id = run_id


class TooManyKeys(Conflict):
    """Some keys have to be revoked first."""


class LastAdministrator(Conflict):
    """Nobody would be left who can let others in."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is the last admin of all projects, and nobody could let others in any more: "
            "make somebody else one first"
        )


class RunDeleted(DomainError):
    """The run was deleted."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__(f"run {run_id} was deleted: send no more of it, or log to a new run")
        self.run_id = run_id


class InvalidInput(DomainError):
    """Fields that cannot be accepted, each with its reason."""

    def __init__(self, problems: list[FieldProblem], *, count: int | None = None) -> None:
        self.problems = problems
        self.count = count if count is not None else len(problems)
        first = problems[0]
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        super().__init__(f"{first.field}: {first.message}{more}")


class DatabaseUnreachable(DomainError):
    """The database does not answer, or not in time."""

    def __init__(self, reason: str, *, retry_after_seconds: int = 2) -> None:
        super().__init__(f"{reason}: try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class DatabaseNotDurable(DomainError):
    """The database may forget in a crash what it has committed."""

    def __init__(self, switched_off: list[str]) -> None:
        super().__init__(
            f"the database has {', '.join(f'{name}=off' for name in switched_off)} and may lose committed measurements "
            "in a crash: switch this on in Postgres, or, for a throw-away cluster of tests, "
            "set NOISESCALE_ALLOW_UNSAFE_DATABASE=true"
        )
        self.switched_off = switched_off
        # a person has to change it; meanwhile jobs keep what they have
        self.retry_after_seconds = 60


class SchemaOutdated(DomainError):
    """A migration of this release has not run."""

    def __init__(self, revision: str | None, newest: str) -> None:
        super().__init__(
            f"the database is at migration {revision}, this release needs {newest}: run `noisescale migrate`"
        )
        self.revision = revision
        self.newest = newest


def refuse(field: str, message: str, value: object = None) -> InvalidInput:
    """The error for one field, ready to raise."""
    shown = None if value is None else repr(value)[:80]
    return InvalidInput([FieldProblem(field, message, shown)])
