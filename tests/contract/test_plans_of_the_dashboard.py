"""What the planner's page asks of the API is asked of the real one."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app_in_process import ADDRESS, AS_LOCAL_USER
from compared_tasks import planted_task, stored_run
from noisescale_dashboard.answers.plans import TradeOff
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem
from noisescale_dashboard.planner import query as planner_query
from noisescale_dashboard.planner import scope as planner_scope
from noisescale_dashboard.planner import words as sentences
from noisescale_dashboard.planner.query import FIELDS, FLAGS

WORDS = (*FIELDS, *FLAGS, "project", "task", "run", "target")
NOTHING: dict[str, Any] = dict.fromkeys(WORDS) | {"pref": 0.5, "y": "usd"}
LIMITS = {"deadline_h": 2.0, "budget_usd": 50.0, "devices": 16, "price": 3.0, "mem": 64, "accum": 2}
SPOT = {"spot": 1, "spot_share": 0.3, "stops": 0.01, "restart_h": 0.1, "ckpt_h": 0.2}


async def planned(api: ApiClient, **said: Any) -> TradeOff:
    view = NOTHING | said
    scope, _ = await planner_scope.find(api, AS_LOCAL_USER, view)
    return await api.trade_off(AS_LOCAL_USER, planner_query.question(view, scope.source))


@pytest.fixture
def api(app: FastAPI) -> ApiClient:
    return ApiClient(base_url=ADDRESS, transport=httpx.ASGITransport(app=app))


async def test_every_field_is_a_question_that_the_real_api_answers(client: httpx.AsyncClient, api: ApiClient) -> None:
    project, run = f"planned {uuid4()}", {"num_devices": 2, "usd_per_device_hour": 3.6, "planned_steps": 3000}
    await planted_task(client, "one", project=project, noise_scale=128.0, targets=[0.5, 0.6])
    run_id = await stored_run(client, project=project, task="one", run=run, noise_scale=128.0)
    limits = LIMITS | SPOT | {"max_steps": 9e5, "max_examples": 9e9}

    rest = await planned(api, run=run_id, worth=100.0, **limits)
    task = await planned(api, project=project, task="one", target=0.6, pref=0.8, **limits)
    typed = await planned(
        api, bcrit=1000.0, bcrit_low=800.0, bcrit_high=1300.0, steps=2000.0, at=500.0, step_s=1.0, at_devices=4,
        sooner=10.0, **limits,
    )  # fmt: skip
    stays = await planned(
        api, bcrit=1000.0, steps=2000.0, at=500.0, overhead_s=1.0, example_s=0.01, at_devices=4, fixed=1
    )
    stored = await api.limits(AS_LOCAL_USER, run_id, 0.8, {"max_hours": 2.0, "num_devices": 4, "fixed_hardware": None})

    assert {limit.kind for limit in rest.limits} == {"seconds", "usd", "steps", "examples", "devices", "memory"}
    assert rest.present is not None
    assert rest.present.steps.value == 3000 - 240
    assert (task.target, task.targets.values) == ("the target 0.6", (0.5, 0.6))
    assert "an hour sooner is worth 10 USD" in typed.price_text
    assert stays.examples_per_step == pytest.approx(100)
    assert [limit.kind for limit in stored] == ["seconds", "devices"]
    assert all(sentences.headline(one) for one in (rest, task, typed, stays))
    assert all(row.hours.low is not None for row in (*rest.rows, *typed.rows))


async def test_each_refusal_of_the_real_api_finds_its_field(api: ApiClient) -> None:
    for name, value in (("bcrit", -1.0), ("at", 5.0), ("devices", 0), ("stops", 9e9), ("overhead_s", 1.0)):
        with pytest.raises(ApiProblem) as refused:
            await planned(api, **({"bcrit": 10.0, "spot": 1} | {name: value}))
        beside, _ = planner_query.refusal(refused.value)
        # steps and the batch that takes them are refused together, at the steps
        assert {"at": "steps"}.get(name, name) in beside
