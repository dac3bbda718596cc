"""Today's client, and every released one, is understood by today's server."""

import json
import math
import re
from pathlib import Path
from typing import get_args

import pytest

from noisescale.description import RunDescription
from noisescale.transport.wire import (
    PATH_COLUMNS,
    PROMISE_COLUMNS,
    Batch,
    FinishRecord,
    GroupRecord,
    LostRange,
    Measurement,
    MetricRecord,
    RunRecord,
    to_json,
)
from noisescale_core.estimators.flags import Flags
from noisescale_server.api.ingest.wire_schemas import BatchBody, Estimator, Measurements, StreamFields

PAYLOADS = sorted((Path(__file__).parent / "payloads").glob("*.json"))
RUN_ID = "7d1f0c9e-2222-4333-8444-555566667777"

STREAM = {
    "estimator": "micro_batches",
    "kind": "simple",
    "unit": "tokens",
    "units_per_example": 1024.0,
    "loss_reduction": "mean_over_examples",
    "optimizer": "AdamW",
    "batch_size_source": "argument",
    "rank": 0,
    "host": "node-1",
    "client_version": "0.1.0",
    "started_at": 1.79e9,
}


STREAM_OF_KIND = STREAM | {
    "kind": "adam",
    "estimator": "ranks_and_micro_batches",
    "measure_every": 10,
    "num_ranks": 4,
    "notes": ["left out: pos_embedding (a plain parameter)"],
}


def make_batch_of_kind():
    """A stream of another kind than simple: rows without loss, every bit of the flags, and what is known of it."""
    every_flag = int(sum(Flags))
    records = [
        (1, RunRecord({"project": "demo"}, STREAM_OF_KIND)),
        (2, Measurement(9, 1, 1.79e9, 640, 8.0, 8, 64.0, 1.5, -0.25, 2.25, 0.0625, -0.375, None, 0, 0.1, every_flag)),
        (3, FinishRecord("finished", 1.79e9)),
    ]
    return Batch(RUN_ID, 1, 3, 1297461022, "2026-11-20T13:02:40.112Z", records, [])


def make_batch():
    """Every kind of record, every column once with a number and once without."""
    description = RunDescription(
        project="demo",
        task="char-lm",
        name="first",
        example="sequence",
        unit="tokens",
        units_per_example=1024,
        config={"lr": 0.1, "nested": {"a": [1, None, True]}},
        tags=["baseline"],
        num_devices=8,
        device="NVIDIA H200",
        usd_per_device_hour=2,
        family="language",
        planned_steps=1000,
    )
    records = [
        (1, RunRecord(description.to_json(), STREAM)),
        (2, Measurement(0, 1, 1.79e9, 64, 8.0, 8, 64.0, 1.5, -0.25, 2.25, 0.0625, -0.375, 3.5, 1, 0.1, 0)),
        (3, Measurement(1, 1, 1.79e9, None, None, 0, None, *[None] * 5, None, 0, None, 63)),
        (4, MetricRecord(1, 1.79e9, {"eval_loss": 0.5, "accuracy": math.nan})),
        (5, GroupRecord(1, 1.79e9, ["blocks.0", "head"], [2, 2], *[[1.0, 0.0]] * 5)),
        (8, FinishRecord("finished", 1.79e9)),
    ]
    return Batch(RUN_ID, 1, 8, 2868543217, "2026-11-20T13:02:40.112Z", records, [LostRange(6, 7, "memory_full")])


def make_batch_of_path():
    """Rows with news of the path of the parameters: whole, without a distance, and none."""
    row = (0, 1, 1.79e9, 64, 8.0, 8, 64.0, 1.5, -0.25, 2.25, 0.0625, -0.375, 3.5, 1, 0.1, 0)
    records = [
        (1, RunRecord({"project": "demo"}, STREAM)),
        (2, Measurement(*row, 16, 0.25, 1e-4, 0.5, 0, 0.9)),
        (3, Measurement(1, *row[1:], 1, 0.25, 0.0, None, 1, 0.9)),
        (4, Measurement(2, *row[1:])),
        (5, FinishRecord("finished", 1.79e9)),
    ]
    return Batch(RUN_ID, 1, 5, 1297461022, "2026-11-20T13:02:40.112Z", records, [])


def make_batch_of_promise():
    """Rows with news of what updates promise: beside the path, alone, below nothing, and none."""
    row = (0, 1, 1.79e9, 64, 8.0, 8, 64.0, 1.5, -0.25, 2.25, 0.0625, -0.375, 3.5, 1, 0.1, 0)
    no_path = (0, *[None] * 5)
    records = [
        (1, RunRecord({"project": "demo"}, STREAM)),
        (2, Measurement(*row, 16, 0.25, 1e-4, 0.5, 0, 0.9, 16, 0.125, 1e-4)),
        (3, Measurement(1, *row[1:], *no_path, 1, -0.5, 0.0)),
        (4, Measurement(2, *row[1:])),
        (5, FinishRecord("finished", 1.79e9)),
    ]
    return Batch(RUN_ID, 1, 5, 1297461022, "2026-11-20T13:02:40.112Z", records, [])


def test_what_the_client_sends_passes_the_schema():
    body = BatchBody.model_validate_json(to_json(make_batch()))

    assert body.run.stream.optimizer == "AdamW"
    assert body.measurements.sum_grad_sq_norm == [-0.25, None]
    assert (body.lost[0].from_, body.lost[0].to) == (6, 7)


def test_the_columns_are_the_same_on_both_sides():
    sent = json.loads(to_json(make_batch_of_promise()))

    assert list(sent["measurements"]) == list(Measurements.model_fields)


def test_rows_without_news_of_the_path_are_sent_without_its_columns():
    sent = json.loads(to_json(make_batch()))["measurements"]

    assert set(Measurements.model_fields) - set(sent) == {*PATH_COLUMNS, *PROMISE_COLUMNS}


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.stem)
def test_what_a_released_client_sent_still_passes(path):
    BatchBody.model_validate_json(path.read_bytes())


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("client-0.1.0", make_batch),
        ("client-0.1.0-further-kind", make_batch_of_kind),
        ("client-0.1.0-path", make_batch_of_path),
        ("client-0.1.0-promise", make_batch_of_promise),
    ],
)
def test_the_payload_of_this_version_is_recorded_and_up_to_date(name, make):
    recorded = json.loads((Path(__file__).parent / "payloads" / f"{name}.json").read_text())

    assert json.loads(to_json(make())) == recorded


def test_a_client_that_says_nothing_of_kinds_ranks_and_notes_is_understood():
    body = BatchBody.model_validate_json(to_json(make_batch()))

    stream = body.run.stream
    assert (stream.kind, stream.measure_every, stream.num_ranks, stream.notes) == ("simple", None, None, [])


def test_what_a_stream_of_another_kind_sends_passes_the_schema():
    body = BatchBody.model_validate_json(to_json(make_batch_of_kind()))

    assert body.run.stream.model_dump(include=set(STREAM_OF_KIND)) == STREAM_OF_KIND
    assert (body.measurements.sum_loss, body.measurements.num_loss) == ([None], [0])


@pytest.mark.parametrize("flag", list(Flags), ids=lambda flag: flag.name)
def test_every_flag_is_documented(flag):
    text = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()

    assert re.search(rf"^\| {flag.value} \| `{flag.name.lower()}` \| \S", text, re.MULTILINE)


@pytest.mark.parametrize("name", [*StreamFields.model_fields, *get_args(Estimator)])
def test_every_field_of_a_stream_and_every_estimator_is_documented(name):
    text = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()

    assert re.search(rf"^\| .*`{name}`.* \| ", text, re.MULTILINE)
