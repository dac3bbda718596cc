"""GET noise-scale, groups and metrics over HTTP."""

import math
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_groups, make_measurements, make_run, make_stream, without_estimates
from noisescale_core.estimators.uncertainty import estimate
from noisescale_core.estimators.windows import WindowSums
from problems import assert_problem


async def send(client: httpx.AsyncClient, stream_id: object, **parts: Any) -> str:
    body = make_batch(**parts)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text
    return str(body["run_id"])


async def series(client: httpx.AsyncClient, run_id: str, **query: object) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}/noise-scale", params={k: str(v) for k, v in query.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def means(rows: dict[str, list[Any]], name: str, steps: Sequence[int]) -> float:
    return math.fsum(rows[name][step] for step in steps) / len(steps)


class TestNoiseScale:
    async def test_columns_are_equally_long_and_complete(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(40)))

        answer = await series(shared_client, run_id)

        assert {name: len(column) for name, column in answer["points"].items()} == dict.fromkeys(
            [
                "x",
                "step",
                "examples",
                "wall_time",
                "num_updates",
                "value",
                "low",
                "high",
                "state",
                "reason",
                "z",
                "trace_cov",
                "trace_cov_se",
                "grad_sq_norm",
                "grad_sq_norm_se",
                "trace_cov_min",
                "trace_cov_max",
                "grad_sq_norm_min",
                "grad_sq_norm_max",
                "value_min",
                "value_max",
                "loss",
                "loss_min",
                "loss_max",
                "global_batch",
                "lr",
                "flags",
            ],
            40,
        )
        head = ("kind", "unit", "units_per_example", "x", "from", "to", "level", "steps_per_block", "window_steps")
        assert {name: answer[name] for name in (*head, "widened", "num_points")} == {
            "kind": "simple",
            "unit": "images",
            "units_per_example": 1.0,
            "x": "step",
            "from": 0,
            "to": 39,
            "level": 0,
            "steps_per_block": 1,
            "window_steps": 8,
            "widened": True,
            "num_points": 40,
        }

    async def test_a_points_estimate_is_the_ratio_of_sums_over_its_window_with_fiellers_interval(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        rows = make_measurements(steps=range(60))
        run_id = await send(shared_client, uuid4(), measurements=rows)

        points = (await series(shared_client, run_id, window=16))["points"]

        window = range(44 - 15, 45)
        blocks = [(1.0, rows["sum_trace_cov"][i], rows["sum_grad_sq_norm"][i]) for i in window]
        expected = estimate(WindowSums.from_blocks(blocks))
        assert points["value"][44] == pytest.approx(
            means(rows, "sum_trace_cov", window) / means(rows, "sum_grad_sq_norm", window)
        )
        found = [points[name][44] for name in ("low", "high", "z", "trace_cov_se")]
        assert found == pytest.approx([expected.low, expected.high, expected.z, expected.trace_cov_se])
        assert points["num_updates"][44] == 16

    async def test_the_envelope_is_the_noise_of_single_records_over_the_windows_signal(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        rows = make_measurements(steps=range(400))
        run_id = await send(shared_client, uuid4(), measurements=rows)

        answer = await series(shared_client, run_id, points=50)

        points, length = answer["points"], answer["steps_per_point"]
        assert length == 8
        for place in range(20, len(points["step"])):
            noise = rows["sum_trace_cov"][points["step"][place] - length + 1 : points["step"][place] + 1]
            assert points["value_min"][place] == pytest.approx(min(noise) / points["grad_sq_norm"][place])
            assert points["value_max"][place] == pytest.approx(max(noise) / points["grad_sq_norm"][place])
        assert [v is None for v in points["value_min"]] == [v is None for v in points["value"]]

    async def test_the_first_points_have_no_value_and_say_why(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(20)))

        points = (await series(shared_client, run_id))["points"]

        assert points["value"][:7] == [None] * 7
        assert points["reason"][:8] == ["too_few_updates"] * 7 + [points["reason"][7]]
        assert points["num_updates"][:9] == [1, 2, 3, 4, 5, 6, 7, 8, 8]

    async def test_steps_without_estimates_have_null_with_the_reason_of_their_flags(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        rows = without_estimates(make_measurements(steps=range(30)), [20], flags=8)
        run_id = await send(shared_client, uuid4(), measurements=rows)

        points = (await series(shared_client, run_id))["points"]

        assert (points["value"][20], points["reason"][20]) == (None, "batch_size_unknown")
        assert points["loss"][20] == pytest.approx(rows["sum_loss"][20])
        # the window reaches one row further back for its eighth block
        assert points["num_updates"][21] == 8

    async def test_a_run_with_one_small_batch_a_step_says_so_everywhere(self, shared_client: httpx.AsyncClient) -> None:
        rows = without_estimates(make_measurements(steps=range(10)), range(10), flags=4)
        run_id = await send(shared_client, uuid4(), measurements=rows)

        answer = await series(shared_client, run_id)

        assert answer["latest"]["reason"] == "one_small_batch"
        assert answer["run_average"]["reason"] == "one_small_batch"
        assert set(answer["points"]["reason"]) == {"one_small_batch"}

    async def test_latest_is_the_last_twentieth_and_the_average_is_over_resolved_windows(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        rows = make_measurements(steps=range(1000), noise_scale=50.0)
        run_id = await send(shared_client, uuid4(), measurements=rows)

        answer = await series(shared_client, run_id)

        last = range(950, 1000)
        ratio = means(rows, "sum_trace_cov", last) / means(rows, "sum_grad_sq_norm", last)
        assert answer["latest"]["value"] == pytest.approx(ratio)
        assert (answer["latest"]["num_blocks"], answer["latest"]["state"]) == (25, "resolved")
        average = answer["run_average"]
        assert average["state"] == "resolved"
        assert average["low"] < 50 < average["high"]
        assert average["value"] == pytest.approx(50.0, rel=0.1)

    @pytest.mark.parametrize(
        ("x", "expected"),
        [("step", 29), ("examples", 7680), ("units", 7680 * 512.0), ("wall_time", 1_790_000_029.0)],
    )
    async def test_x_chooses_the_label_of_the_points(
        self, shared_client: httpx.AsyncClient, x: str, expected: float
    ) -> None:
        run = make_run(units_per_example=512.0)
        run_id = await send(shared_client, uuid4(), run=run, measurements=make_measurements(steps=range(30)))

        points = (await series(shared_client, run_id, x=x))["points"]

        assert points["x"][-1] == expected

    async def test_the_loss_as_label_is_the_points_own(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(30)))

        points = (await series(shared_client, run_id, x="loss"))["points"]

        assert points["x"] == points["loss"]

    async def test_events_mark_changes_of_batch_and_learning_rate_and_resumptions(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        changed = [256.0] * 50 + [512.0] * 50
        changed[20] = 100.0  # the short last batch of an epoch
        rates = [0.1] * 70 + [0.03] * 30
        run_id = uuid4()
        rows = make_measurements(steps=range(100), lr=0.1)
        await send(shared_client, uuid4(), run_id=run_id, measurements=rows | {"global_batch": changed, "lr": rates})
        later = make_measurements(steps=range(80, 120), global_batch=512.0, lr=0.03)
        await send(shared_client, uuid4(), run_id=run_id, stream=make_stream(started_at=1.8e9), measurements=later)

        events = (await series(shared_client, str(run_id)))["events"]

        assert events == [
            {"step": 50, "kind": "batch", "from": 256.0, "to": 512.0},
            {"step": 70, "kind": "lr", "from": 0.1, "to": 0.03},
            {"step": 80, "kind": "resumed"},
        ]

    async def test_a_branch_is_an_event_of_its_run_where_it_left(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(60)))
        other = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(60)))
        for step in (40, 40, 20, 10_000, "20", 1e300, -1, 2.5, None):
            body = {"project": "demo", "task": "digits", "kind": "branch", "run_id": run_id, "details": {"step": step}}
            answer = await shared_client.post("/api/v1/sweeps", json=body)
            assert answer.status_code == 201, answer.text

        assert (await series(shared_client, run_id))["events"] == [
            {"step": 20, "kind": "branch"},
            {"step": 40, "kind": "branch"},
        ]
        assert [event["step"] for event in (await series(shared_client, run_id, to=30))["events"]] == [20]
        assert (await series(shared_client, other))["events"] == []

    async def test_a_run_without_measurements_has_empty_columns(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await send(shared_client, uuid4(), last_seq=1, lost=[])

        answer = await series(shared_client, run_id)

        assert (answer["num_points"], answer["points"]["x"], answer["from"]) == (0, [], None)
        assert answer["latest"]["reason"] == "no_estimates"

    async def test_steps_that_the_run_does_not_have_are_empty(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(30)))

        answer = await series(shared_client, run_id, **{"from": 1000, "to": 2000})

        assert (answer["num_points"], answer["from"], answer["to"]) == (0, 1000, 2000)
        assert (answer["level"], answer["steps_per_block"], answer["steps_per_point"]) == (0, 1, 1)
        assert (answer["window_steps"], answer["points"]["x"]) == (8, [])

    async def test_an_unknown_run_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get(f"/api/v1/runs/{uuid4()}/noise-scale")

        assert_problem(answer, 404, "run-not-found")

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("points=0", "points"),
            ("points=5000", "points"),
            ("window=-1", "window"),
            ("from=9&to=3", "from"),
            ("x=colour", "x"),
            ("kind=critical", "kind"),
            ("kind=adam&group=head", "kind"),
            ("from=99999999999999999999", "from"),
            ("fro=1", "fro"),
        ],
    )
    async def test_what_cannot_be_answered_is_named(
        self, shared_client: httpx.AsyncClient, query: str, field: str
    ) -> None:
        answer = await shared_client.get(f"/api/v1/runs/{uuid4()}/noise-scale?{query}")

        assert_problem(answer, 422, "invalid-input", field=field)


class TestGroups:
    async def test_layers_come_in_network_order_with_estimates_over_the_range(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        records = [
            make_groups(seq=42 + i, step=4 * i + 3, names=("embed", "blocks.0", "a")) | {"num_updates": [10, 7, 3]}
            for i in range(10)
        ]
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(40)), groups=records)

        answer = (await shared_client.get(f"/api/v1/runs/{run_id}/groups")).json()

        assert [group["name"] for group in answer["groups"]] == ["embed", "blocks.0", "a"]
        assert (answer["from"], answer["to"]) == (0, 39)
        blocks = [(7.0, record["sum_trace_cov"][1], record["sum_grad_sq_norm"][1]) for record in records]
        expected = estimate(WindowSums.from_blocks(blocks))
        layer = answer["groups"][1]
        assert layer["estimate"]["value"] == pytest.approx(expected.value)
        assert layer["estimate"]["low"] == pytest.approx(expected.low)
        assert layer["series"]["step"] == [4 * i + 3 for i in range(10)]

    async def test_records_without_sums_of_a_layer_count_for_nothing(self, shared_client: httpx.AsyncClient) -> None:
        records = [make_groups(seq=42 + i, step=4 * i + 3) for i in range(9)]
        for name in (name for name in records[0] if name.startswith("sum")):
            records[4][name] = [None, records[4][name][1]]
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(40)), groups=records)

        layers = (await shared_client.get(f"/api/v1/runs/{run_id}/groups")).json()["groups"]

        counts = [(layer["estimate"]["num_updates"], layer["estimate"]["num_blocks"]) for layer in layers]
        assert counts == [(80, 8), (90, 9)]

    async def test_with_fewer_than_eight_records_the_spread_of_updates_gives_the_interval(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        records = [make_groups(seq=42 + i, step=4 * i + 3) for i in range(3)]
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(40)), groups=records)

        answer = (await shared_client.get(f"/api/v1/runs/{run_id}/groups")).json()

        total = {name: sum(record[name][0] for record in records) for name in records[0] if name.startswith("sum")}
        expected = estimate(
            WindowSums.from_moments(
                num_updates=30,
                trace_cov=total["sum_trace_cov"],
                grad_sq_norm=total["sum_grad_sq_norm"],
                trace_cov_sq=total["sum_trace_cov_sq"],
                grad_sq_norm_sq=total["sum_grad_sq_norm_sq"],
                cross=total["sum_trace_cov_grad_sq_norm"],
            )
        )
        found = answer["groups"][0]["estimate"]
        assert (found["state"], found["num_updates"]) == (expected.state, 30)
        assert found["low"] == pytest.approx(expected.low)

    async def test_the_series_of_a_layer_has_the_shape_of_the_whole_models(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        records = [make_groups(seq=202 + i, step=10 * i + 9) for i in range(20)]
        run_id = await send(shared_client, uuid4(), measurements=make_measurements(steps=range(200)), groups=records)

        of_layer = await series(shared_client, run_id, group="head", window=80)
        of_model = await series(shared_client, run_id)

        assert set(of_layer["points"]) == set(of_model["points"])
        assert of_layer["points"]["step"] == [10 * i + 9 for i in range(20)]
        window = [record for record in records if 119 < record["step"] <= 199]
        assert of_layer["points"]["value"][-1] == pytest.approx(
            sum(r["sum_trace_cov"][1] for r in window) / sum(r["sum_grad_sq_norm"][1] for r in window)
        )
        assert of_layer["points"]["loss"] == [None] * 20

    async def test_an_unknown_layer_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await send(shared_client, uuid4())

        answer = await shared_client.get(f"/api/v1/runs/{run_id}/noise-scale?group=nowhere")

        assert_problem(answer, 404, "layer-not-found")


class TestMetrics:
    async def test_points_hold_the_last_value_and_the_extremes(self, shared_client: httpx.AsyncClient) -> None:
        metrics = {
            "seq": list(range(2, 12)),
            "step": list(range(10)),
            "wall_time": [float(i) for i in range(10)],
            "name": ["eval_loss"] * 10,
            "value": [5.0, 1.0, 3.0, None, 2.0, 9.0, 4.0, 4.0, 0.0, 7.0],
        }
        run_id = await send(shared_client, uuid4(), metrics=metrics)

        answer = (await shared_client.get(f"/api/v1/runs/{run_id}/metrics?points=2")).json()

        assert answer == {
            "names": ["eval_loss"],
            "metrics": [
                {
                    "name": "eval_loss",
                    "step": [4, 9],
                    "value": [2.0, 7.0],
                    "min": [1.0, 0.0],
                    "max": [5.0, 9.0],
                    "wall_time": [4.0, 9.0],
                }
            ],
            "next_cursor": None,
        }

    async def test_of_a_resumed_run_overtaken_values_are_not_shown(self, shared_client: httpx.AsyncClient) -> None:
        run_id = uuid4()

        def logged(steps: Sequence[int], value: float, first_seq: int) -> dict[str, list[Any]]:
            return {
                "seq": list(range(first_seq, first_seq + len(steps))),
                "step": list(steps),
                "wall_time": [1.0 for _ in steps],
                "name": ["accuracy" for _ in steps],
                "value": [value for _ in steps],
            }

        rows = make_measurements(steps=range(10))
        await send(shared_client, uuid4(), run_id=run_id, measurements=rows, metrics=logged([4, 8, 20], 0.5, 12))
        later = make_measurements(steps=range(6, 12))
        resumed = make_stream(started_at=1.8e9)
        await send(
            shared_client, uuid4(), run_id=run_id, stream=resumed, measurements=later, metrics=logged([8], 0.7, 8)
        )

        answer = (await shared_client.get(f"/api/v1/runs/{run_id}/metrics?name=accuracy")).json()

        [metric] = answer["metrics"]
        assert (metric["step"], metric["value"]) == ([4, 8, 20], [0.5, 0.7, 0.5])
