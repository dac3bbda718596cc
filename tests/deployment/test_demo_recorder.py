"""What is recorded of the demo's trainings: joined into few requests, with every record once."""

from typing import Any

import pytest

from demo.recorder import joined, without_tasks

STREAM = "/api/v1/streams/s/batches"


def batch(first: int, last: int, **parts: Any) -> dict[str, Any]:
    body = {"run_id": "r", "first_seq": first, "last_seq": last, "crc32": first, "sent_at": "now", **parts}
    return {"method": "POST", "path": STREAM, "body": body}


def rows(*seqs: int, **columns: list[Any]) -> dict[str, Any]:
    return {"seq": list(seqs), "sum_loss": [1 / 3] * len(seqs), **columns}


DESCRIBED = {"seq": 1, "run": {"project": "demo", "task": "digits"}, "stream": {"host": "h", "started_at": 1.23456}}


def test_batches_of_a_stream_become_one_with_every_record_once_and_no_host() -> None:
    sent = [
        batch(1, 2, run=DESCRIBED, measurements=rows(2)),
        batch(3, 4, measurements=rows(3, 4)),
        batch(3, 4, measurements=rows(3, 4)),
        batch(5, 5, finish={"seq": 5}),
    ]

    [found] = joined(sent)

    assert (found["body"]["first_seq"], found["body"]["last_seq"]) == (1, 5)
    assert found["body"]["measurements"] == {"seq": [2, 3, 4], "sum_loss": [0.333333333] * 3}
    assert found["body"]["finish"] == {"seq": 5}
    assert found["body"]["run"]["stream"] == {"started_at": 1.235}
    assert "sent_at" not in found["body"]


def test_rows_that_know_nothing_of_the_path_say_so_next_to_those_that_do() -> None:
    known = {"num_path_updates": [1], "path_sq_distance": [0.5]}

    [found] = joined([batch(1, 1, measurements=rows(1)), batch(2, 2, measurements=rows(2, **known))])

    assert found["body"]["measurements"]["num_path_updates"] == [0, 1]
    assert found["body"]["measurements"]["path_sq_distance"] == [None, 0.5]


def test_a_stream_that_describes_itself_anew_begins_another_batch() -> None:
    found = joined([batch(1, 1, run=DESCRIBED), batch(2, 2, run=DESCRIBED | {"seq": 2})])

    assert [one["body"]["first_seq"] for one in found] == [1, 2]


@pytest.mark.parametrize("named", [{"id": "c"}, {}])
def test_trials_of_a_sweep_are_attached_together_and_each_has_an_id(named: dict[str, str]) -> None:
    def attach(*curves: dict[str, Any]) -> dict[str, Any]:
        return {"method": "POST", "path": "/api/v1/sweeps/w/runs", "body": {"runs": list(curves)}}

    [found] = joined([attach({"run_id": "a", "lr": 1}), attach({"run_id": "a", "lr": 2}, {"lr": 3, **named})])

    assert [one["lr"] for one in found["body"]["runs"]] == [2, 3]
    assert all(one.get("run_id") or one["id"] for one in found["body"]["runs"])


def test_a_task_that_is_left_out_leaves_neither_run_nor_sweep() -> None:
    sweep = {"method": "POST", "path": "/api/v1/sweeps", "body": {"id": "w", "task": "digits"}}
    trials = {"method": "POST", "path": "/api/v1/sweeps/w/runs", "body": {"runs": []}}
    other = {"method": "POST", "path": "/api/v1/sweeps", "body": {"id": "v", "task": "blobs"}}

    assert without_tasks([batch(1, 1, run=DESCRIBED), batch(2, 2), sweep, trials, other], ["digits"]) == [other]
