"""GET /api/v1/recommendation: a language model's batch before any run."""

import httpx

from noisescale_core.advice.language_model import PlannedModel, recommend
from noisescale_core.advice.question import Question
from problems import assert_problem

ADDRESS = "/api/v1/recommendation"


async def test_it_says_what_the_core_says(shared_client: httpx.AsyncClient) -> None:
    answer = await shared_client.get(ADDRESS, params={"tokens": 20e9, "sequence_length": 2048, "preference": 0.8})

    said = recommend(PlannedModel(tokens=20e9, sequence_length=2048), Question(preference=0.8))
    found = answer.raise_for_status().json()
    assert (found["decision"], found["headline"], found["reason"]) == (said.decision, said.headline, said.reason)
    assert said.interval is not None
    assert found["interval"]["value"] == said.interval.value
    assert found["run_id"] is None


async def test_what_published_sweeps_do_not_answer_is_refused_with_the_field(shared_client: httpx.AsyncClient) -> None:
    nothing = await shared_client.get(ADDRESS)
    other = await shared_client.get(ADDRESS, params={"tokens": 1e9, "optimizer": "lion"})
    none = await shared_client.get(ADDRESS, params={"tokens": -1})

    two = await shared_client.get(ADDRESS, params={"tokens": 1e9, "preference": 0.2, "examples_per_step": 10})

    for answer, field, words in (
        (nothing, "tokens", "tokens is missing"),
        (other, "optimizer", "got 'lion'"),
        (none, "tokens", "tokens"),
        (two, "preference", "preference and examples_per_step each say what a step is worth"),
    ):
        assert_problem(answer, 422, "invalid-input", field=field)
        assert words in answer.json()["detail"]
