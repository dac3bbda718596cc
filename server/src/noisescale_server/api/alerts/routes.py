"""/api/v1/projects/{project}/alerts: rules, receivers, what has happened, and what would have."""

from typing import Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Path, Query, Request
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from noisescale_server.api.access.route import Asking
from noisescale_server.api.alerts.schemas import (
    DryRunAnswer,
    DryRunBody,
    EventAnswer,
    EventList,
    NewReceiverAnswer,
    ReceiverAnswer,
    ReceiverBody,
    ReceiverList,
    RuleAnswer,
    RuleBody,
    RuleList,
    TestAnswer,
    ToldAnswer,
)
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import (
    AppSettings,
    KnownWholeRuns,
    Now,
    ReadSession,
    Session,
    Text,
    body_of,
    refuse_number,
)
from noisescale_server.services.alerts import addresses, managing
from noisescale_server.services.alerts.replay import Replayed, replay
from noisescale_server.services.alerts.rules import Rule

# a name may hold slashes
router = APIRouter(prefix="/projects/{project:path}/alerts", tags=["alerts"])

ProjectName = Annotated[Text, Path(description="name of the project")]
RuleId = Annotated[UUID, Path(description="UUID of the rule")]
ReceiverId = Annotated[UUID, Path(description="UUID of the receiver")]


class EventsQuery(BaseModel):
    """Which page."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    before: Annotated[
        AwareDatetime | None,
        BeforeValidator(refuse_number),
        Field(description="`happened_at` of the last event of the page before"),
    ] = None
    before_id: Annotated[UUID | None, Field(description="its `id`: several events may be of one moment")] = None


@router.get("/rules")
async def list_rules(project: ProjectName, session: ReadSession) -> RuleList:
    """What is watched for in the project's runs."""
    return RuleList(rules=[RuleAnswer.of(one) for one in await managing.rules(session, project)])


@router.post("/rules", status_code=201, response_model=RuleAnswer, openapi_extra=body_of(RuleBody))
async def add_rule(project: ProjectName, request: Request, session: Session, by: Asking) -> RuleAnswer:
    """Watch for something."""
    wanted = parse(RuleBody, await read_body(request)).wanted()
    return RuleAnswer.of(await managing.add_rule(session, by, project, wanted))


@router.put("/rules/{rule_id}", response_model=RuleAnswer, openapi_extra=body_of(RuleBody))
async def change_rule(
    project: ProjectName, rule_id: RuleId, request: Request, session: Session, by: Asking
) -> RuleAnswer:
    """Let a rule be exactly this, muted or not."""
    wanted = parse(RuleBody, await read_body(request)).wanted()
    return RuleAnswer.of(await managing.change_rule(session, by, project, rule_id, wanted))


@router.delete("/rules/{rule_id}", status_code=204)
async def delete_rule(project: ProjectName, rule_id: RuleId, session: Session, by: Asking) -> None:
    """End a rule; what it has noticed stays."""
    await managing.delete_rule(session, by, project, rule_id)


@router.post("/dry-run", response_model=DryRunAnswer, openapi_extra=body_of(DryRunBody))
async def dry_run(
    project: ProjectName, request: Request, session: ReadSession, whole_runs: KnownWholeRuns, now: Now
) -> DryRunAnswer:
    """What a rule would have told of in the last days, without telling anybody."""
    asked = parse(DryRunBody, await read_body(request))
    project_id = await managing.project_id_of(session, project)
    rule = Rule(uuid4(), project_id, asked.rule.kind, asked.rule.numbers())
    return _dry_run_answer(await replay(session, whole_runs, rule, days=asked.days, now=now), asked.days)


@router.get("/receivers")
async def list_receivers(project: ProjectName, session: ReadSession) -> ReceiverList:
    """Who is told of the project's events."""
    return ReceiverList(receivers=[ReceiverAnswer.of(one) for one in await managing.receivers(session, project)])


@router.post("/receivers", status_code=201, response_model=NewReceiverAnswer, openapi_extra=body_of(ReceiverBody))
async def add_receiver(
    project: ProjectName, request: Request, session: Session, by: Asking, settings: AppSettings
) -> NewReceiverAnswer:
    """Tell somebody of every event from now on; the answer holds the secret of its signatures, this once."""
    body = parse(ReceiverBody, await read_body(request))
    addresses.check_form(body.url, settings.alert_hosts)
    made = await managing.add_receiver(
        session,
        by,
        project,
        name=body.name,
        shape=body.shape,
        url=body.url,
        email_to=body.email_to,
        pepper=request.app.state.pepper,
    )
    return NewReceiverAnswer.made(made)


@router.delete("/receivers/{receiver_id}", status_code=204)
async def delete_receiver(project: ProjectName, receiver_id: ReceiverId, session: Session, by: Asking) -> None:
    """Tell it no more; what is still owed to it is given up."""
    await managing.delete_receiver(session, by, project, receiver_id)


@router.post("/receivers/{receiver_id}/test", status_code=201)
async def test_receiver(
    project: ProjectName, receiver_id: ReceiverId, session: Session, by: Asking, now: Now
) -> TestAnswer:
    """Send it a test; the list of events says what became of it."""
    return TestAnswer(event_id=await managing.test_receiver(session, by, project, receiver_id, now))


@router.get("/events")
async def list_events(project: ProjectName, query: Annotated[EventsQuery, Query()], session: ReadSession) -> EventList:
    """What rules have noticed, newest first, and what became of each message."""
    found = await managing.events(session, project, limit=query.limit, before=query.before, before_id=query.before_id)
    return EventList(events=[EventAnswer.of(event, deliveries) for event, deliveries in found])


def _dry_run_answer(found: Replayed, days: float) -> DryRunAnswer:
    span = "week" if days == 7 else f"{days:g} days"
    times = "once" if len(found.told) == 1 else f"{len(found.told)} times"
    text = f"This rule would have fired {times} in the last {span}, over {found.num_runs} runs."
    return DryRunAnswer(
        text=text,
        times=len(found.told),
        told=[ToldAnswer(run_id=one.run_id, run=one.run, at=one.at, sentence=one.sentence) for one in found.told],
        num_runs=found.num_runs,
        has_more=found.has_more,
    )
