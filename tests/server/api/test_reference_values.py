"""GET /api/v1/reference-values: verified values only, each with source and evidence."""

import httpx


async def test_every_value_says_where_it_comes_from(shared_client: httpx.AsyncClient) -> None:
    answer = (await shared_client.get("/api/v1/reference-values")).json()

    assert answer["total"] == len(answer["values"]) == 166
    for item in answer["values"]:
        assert item["source"]
        assert item["source_address"]
        assert item["evidence"]
        assert "verified" not in item


async def test_kind_says_what_the_value_is(shared_client: httpx.AsyncClient) -> None:
    types = {"number": (int, float), "range": list, "record": dict, "text": str, "none": type(None)}

    values = (await shared_client.get("/api/v1/reference-values")).json()["values"]

    assert {item["kind"] for item in values} == set(types)
    assert all(isinstance(item["value"], types[item["kind"]]) for item in values)


async def test_they_are_filtered_by_task_and_quantity(shared_client: httpx.AsyncClient) -> None:
    query = {"task": "mnist", "quantity": "simple_noise_scale_average"}

    answer = (await shared_client.get("/api/v1/reference-values", params=query)).json()

    assert [(item["task"], item["value"], item["unit"]) for item in answer["values"]] == [("MNIST", 900, "images")]


async def test_conditions_of_a_value_are_its_details(shared_client: httpx.AsyncClient) -> None:
    answer = (await shared_client.get("/api/v1/reference-values", params={"quantity": "bcrit_at_loss"})).json()

    assert {item["details"]["loss_nats"] for item in answer["values"]} == {4.0, 3.0, 2.2, 2.0}


async def test_a_task_that_nobody_published_is_an_empty_list(shared_client: httpx.AsyncClient) -> None:
    answer = (await shared_client.get("/api/v1/reference-values", params={"task": "mine"})).json()

    assert answer == {"values": [], "total": 0}
