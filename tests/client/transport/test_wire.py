import json
import math

import pytest

from noisescale.transport.wire import (
    Batch,
    FinishRecord,
    GroupRecord,
    LostRange,
    Measurement,
    MetricRecord,
    RunRecord,
    to_json,
)


def test_records_become_columns_by_kind():
    row = Measurement(0, 1, 5.0, 16, 4.0, 4, 16.0, 1.0, 2.0, 1.0, 4.0, 2.0, math.inf, 1, None, 2)
    records = [
        (1, RunRecord({"project": "demo"}, {"kind": "simple"})),
        (2, row),
        (3, MetricRecord(0, 6.0, {"a": 1.0, "b": math.nan})),
        (4, GroupRecord(0, 7.0, ["x"], [1], [1.0], [2.0], [math.inf], [4.0], [2.0])),
        (7, FinishRecord("finished", 8.0)),
    ]

    body = json.loads(
        to_json(Batch("run", 1, 7, 99, "2026-11-20T13:02:40.112Z", records, [LostRange(5, 6, "memory_full")]))
    )

    assert {name: body[name] for name in ("proto", "run_id", "first_seq", "last_seq", "crc32", "sent_at")} == {
        "proto": 1, "run_id": "run", "first_seq": 1, "last_seq": 7, "crc32": 99, "sent_at": "2026-11-20T13:02:40.112Z"
    }  # fmt: skip
    assert body["run"] == {"seq": 1, "run": {"project": "demo"}, "stream": {"kind": "simple"}}
    assert body["measurements"]["seq"] == [2]
    assert body["measurements"]["sum_loss"] == [None]
    assert body["measurements"]["sum_grad_sq_norm"] == [2.0]
    assert body["metrics"] == {
        "seq": [3, 3], "step": [0, 0], "wall_time": [6.0, 6.0], "name": ["a", "b"], "value": [1.0, None]
    }  # fmt: skip
    assert body["groups"][0]["sum_trace_cov_sq"] == [None]
    assert body["groups"][0]["names"] == ["x"]
    assert body["finish"] == {"seq": 7, "status": "finished", "wall_time": 8.0}
    assert body["lost"] == [{"from": 5, "to": 6, "reason": "memory_full"}]


def test_what_is_empty_is_left_out():
    body = json.loads(to_json(Batch("run", 1, 1, 0, "now", [], [LostRange(1, 1, "rejected")])))

    assert set(body) == {"proto", "run_id", "first_seq", "last_seq", "crc32", "sent_at", "lost"}


def test_a_number_that_no_json_has_is_never_written():
    batch = Batch("run", 1, 1, 0, "now", [(1, RunRecord({"lr": math.nan}, {}))], [])

    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(batch)
