"""Bodies and answers about alerts; see docs/alerts.md."""

from datetime import datetime
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AwareDatetime, Field, model_validator

from noisescale_server.api.platform.schemas import Answer, Body, Name
from noisescale_server.services.alerts.managing import NewReceiver, WantedRule
from noisescale_server.services.alerts.payloads import Shape
from noisescale_server.services.alerts.rules import KINDS, Kind
from noisescale_server.storage.alerts.rows import AlertDelivery, AlertEvent, AlertReceiver, AlertRule

Hours = Annotated[float, Field(ge=0, le=8_760, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class RuleBody(Body):
    """Body of POST and PUT of a rule: a kind, and the numbers that it takes; the others are refused."""

    name: Name
    kind: Kind
    factor: Annotated[Number | None, Field(description="batch_off: by which the batch is off at least")] = None
    odds: Annotated[Number | None, Field(description="batch_off, saving: least odds that the change is right")] = None
    usd: Annotated[Number | None, Field(description="saving: least expected saving over the rest of the plan")] = None
    minutes: Annotated[
        Number | None, Field(description="how long it must hold; stalled: without data, spool_growing: late")
    ] = None
    again_after_hours: Annotated[Hours, Field(description="least time between two notifications about one run")] = 24.0
    muted_until: Annotated[AwareDatetime | None, Field(description="until then events are recorded and not sent")] = (
        None
    )

    @model_validator(mode="after")
    def check(self) -> Self:
        """The rule itself.

        Raises:
            ValueError: For a number that its kind does not take, or that is out of its range.
        """
        taken = KINDS[self.kind]
        for name, value in self.numbers().items():
            if name not in taken:
                known = ", ".join(taken) or "none"
                raise ValueError(f"has {name}, which a rule of kind {self.kind} does not take: its numbers are {known}")
            low, high = taken[name].low, taken[name].high
            if not low <= value <= high:
                raise ValueError(f"has a {name} of {value:g}: it must be between {low:g} and {high:g}")
        return self

    def numbers(self) -> dict[str, float]:
        """The numbers that were said."""
        said = {name: getattr(self, name) for name in ("factor", "odds", "usd", "minutes")}
        return {name: value for name, value in said.items() if value is not None}

    def wanted(self) -> WantedRule:
        """The same in the terms of the services."""
        return WantedRule(
            name=self.name,
            kind=self.kind,
            settings=self.numbers(),
            again_after_hours=self.again_after_hours,
            muted_until=self.muted_until,
        )


class DryRunBody(Body):
    """Body of POST …/dry-run: a rule that need not be stored, and how far to look back."""

    rule: RuleBody
    days: Annotated[float, Field(gt=0, le=90, allow_inf_nan=False)] = 7.0


class ReceiverBody(Body):
    """Body of POST of a receiver."""

    name: Name
    shape: Annotated[
        Shape, Field(description="webhook: JSON of our own; slack: as Slack takes it; email: as a gateway")
    ]
    url: Annotated[str, Field(min_length=1, max_length=2_048, description="a public https address")]
    email_to: Annotated[
        str | None, Field(pattern=r"^[^@\s<>,;\x00-\x1f\x7f]+@[^@\s<>,;\x00-\x1f\x7f]+$", max_length=256)
    ] = None

    @model_validator(mode="after")
    def check(self) -> Self:
        """The receiver itself.

        Raises:
            ValueError: For an e-mail to nobody, or somebody for what is none.
        """
        if (self.shape == "email") != (self.email_to is not None):
            raise ValueError("has a shape of email and names whom it goes to (email_to), or neither")
        return self


class RuleAnswer(Answer):
    """A rule with every number that it takes, those by default included."""

    id: UUID
    name: str
    kind: Kind
    factor: float | None
    odds: float | None
    usd: float | None
    minutes: float | None
    again_after_hours: float
    muted_until: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, stored: AlertRule) -> Self:
        """As it is stored."""
        kind: Kind = stored.kind  # type: ignore[assignment]  # the API takes no other
        numbers = {name: stored.settings.get(name, one.default) for name, one in KINDS[kind].items()}
        return cls(
            **{name: numbers.get(name) for name in ("factor", "odds", "usd", "minutes")},
            id=stored.id,
            name=stored.name,
            kind=kind,
            again_after_hours=stored.again_after_hours,
            muted_until=stored.muted_until,
            created_at=stored.created_at,
        )


class RuleList(Answer):
    """Rules, oldest first."""

    rules: list[RuleAnswer]


class ReceiverAnswer(Answer):
    """A receiver; of its address only the host, as the rest may be a secret."""

    id: UUID
    name: str
    shape: Shape
    host: str
    email_to: str | None
    created_at: datetime

    @classmethod
    def of(cls, stored: AlertReceiver) -> Self:
        """As it is stored, without its address."""
        return cls(**_receiver(stored))


class ReceiverList(Answer):
    """Receivers, oldest first."""

    receivers: list[ReceiverAnswer]


class NewReceiverAnswer(ReceiverAnswer):
    """A new receiver. `secret`, with which its messages are signed, is shown this once."""

    secret: str

    @classmethod
    def made(cls, new: NewReceiver) -> Self:
        """With its secret."""
        return cls(**_receiver(new.receiver), secret=new.secret)


def _receiver(stored: AlertReceiver) -> dict[str, object]:
    return {
        "id": stored.id,
        "name": stored.name,
        "shape": stored.shape,
        "host": urlsplit(stored.url).hostname or "",
        "email_to": stored.email_to,
        "created_at": stored.created_at,
    }


class DeliveryAnswer(Answer):
    """What became of an event at a receiver; `answer` says what the last attempt came to."""

    receiver: str
    state: Literal["waiting", "delivered", "undelivered"]
    num_attempts: int
    answer: str | None
    due_at: datetime
    done_at: datetime | None


class EventAnswer(Answer):
    """One thing that a rule has noticed of a run; a test has no rule and no run."""

    id: UUID
    rule: str
    kind: Kind | None
    run_id: UUID | None
    run: str | None
    sentence: str
    happened_at: datetime
    is_muted: bool
    deliveries: list[DeliveryAnswer]

    @classmethod
    def of(cls, event: AlertEvent, deliveries: list[AlertDelivery]) -> Self:
        """As it is stored."""
        return cls(
            id=event.id,
            rule=event.rule_name,
            kind=event.kind,
            run_id=event.run_id,
            run=event.run_name,
            sentence=event.sentence,
            happened_at=event.happened_at,
            is_muted=event.is_muted,
            deliveries=[
                DeliveryAnswer(
                    receiver=one.receiver_name,
                    state=one.state,
                    num_attempts=one.num_attempts,
                    answer=one.answer,
                    due_at=one.due_at,
                    done_at=one.done_at,
                )
                for one in deliveries
            ],
        )


class EventList(Answer):
    """Events, newest first."""

    events: list[EventAnswer]


class TestAnswer(Answer):
    """The event that was sent to a receiver to try it."""

    event_id: UUID


class ToldAnswer(Answer):
    """What would have been told of."""

    run_id: UUID
    run: str
    at: datetime
    sentence: str


class DryRunAnswer(Answer):
    """What a rule would have told of."""

    text: str
    times: int
    told: list[ToldAnswer]
    num_runs: int
    has_more: bool
