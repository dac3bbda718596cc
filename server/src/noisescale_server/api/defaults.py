"""GET and PUT /api/v1/projects/{project}/defaults: prices and the worth of a step where nobody says them."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field

from noisescale_core.advice.defaults import CURRENCY, Defaults
from noisescale_core.advice.question import FIELDS, AllowedRange, range_of
from noisescale_core.errors import DomainError
from noisescale_server.api.access.route import Asking
from noisescale_server.api.platform.body import parse, read_body
from noisescale_server.api.platform.deps import ReadSession, Session, Text, body_of
from noisescale_server.api.platform.schemas import Answer, Body
from noisescale_server.services import defaults as of_project
from noisescale_server.services.platform.errors import refuse

# a name may hold slashes
router = APIRouter(prefix="/projects/{project:path}/defaults", tags=["projects"])

ProjectName = Annotated[Text, Path(description="name of the project")]
Rate = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False, description="USD for one unit of the currency")]


def _range_of(name: str) -> AllowedRange:
    found = range_of(FIELDS[name])
    assert found is not None, "each of these fields is a number"
    return found


_PRICE, _PREFERENCE, _EXAMPLES = (_range_of(one) for one in ("usd_per_device_hour", "preference", "examples_per_step"))


class DefaultsBody(Body):
    """Body of PUT; what is left out the project does not say."""

    device_hour_price: Annotated[
        float | None,
        Field(ge=_PRICE.low, le=1e9, allow_inf_nan=False, description="of one device for an hour, in the currency"),
    ] = None
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$", description="ISO 4217 code of that price")] = CURRENCY
    usd_per_unit: Rate | None = None
    preference: Annotated[
        float | None,
        Field(ge=_PREFERENCE.low, le=_PREFERENCE.high, allow_inf_nan=False, description=_PREFERENCE.meaning),
    ] = None
    examples_per_step: Annotated[
        float | None, Field(ge=_EXAMPLES.low, le=_EXAMPLES.high, allow_inf_nan=False, description=_EXAMPLES.meaning)
    ] = None
    fixed_hardware: Annotated[bool, Field(description="the devices stay: step times say what a step is worth")] = False

    def defaults(self) -> Defaults:
        """The same in the words of the theory.

        Raises:
            InvalidInput: If a step's worth is said twice, or a currency has no rate.
        """
        if self.currency != CURRENCY and self.usd_per_unit is None:
            raise refuse("usd_per_unit", f"all amounts are answered in USD: say what one {self.currency} is worth")
        said = self.model_dump() | {"usd_per_unit": 1.0 if self.usd_per_unit is None else self.usd_per_unit}
        try:
            return Defaults(**said)
        except DomainError as error:
            at = "usd_per_unit" if "usd_per_unit" in str(error) else "preference"
            raise refuse(at, str(error)) from error


class DefaultsAnswer(Answer):
    """What the project says; null where it says nothing. `usd_per_device_hour` is the price in USD."""

    device_hour_price: float | None
    currency: str
    usd_per_unit: float
    usd_per_device_hour: float | None
    preference: float | None
    examples_per_step: float | None
    fixed_hardware: bool


@router.get("")
async def get_defaults(project: ProjectName, session: ReadSession) -> DefaultsAnswer:
    """What is assumed of prices where neither a run nor a question says them."""
    return _answer(await of_project.of_name(session, project))


@router.put("", openapi_extra=body_of(DefaultsBody))
async def put_defaults(project: ProjectName, request: Request, session: Session, by: Asking) -> DefaultsAnswer:
    """Say what is assumed from now on; every run of the project is judged again by it."""
    wanted = parse(DefaultsBody, await read_body(request)).defaults()
    return _answer(await of_project.put(session, by, project, wanted))


def _answer(said: Defaults) -> DefaultsAnswer:
    return DefaultsAnswer(
        device_hour_price=said.device_hour_price,
        currency=said.currency,
        usd_per_unit=said.usd_per_unit,
        usd_per_device_hour=said.usd_per_device_hour,
        preference=said.preference,
        examples_per_step=said.examples_per_step,
        fixed_hardware=said.fixed_hardware,
    )
