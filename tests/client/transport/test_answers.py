"""The table of docs/wire.md, line by line."""

import email.utils
import time

import pytest

from noisescale.transport.upload.answers import Action, Answer, NextAction, decide, retry_after_seconds


def problem(name):
    return {"type": f"/errors/{name}"}


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (Answer(200, {"acked_seq": 6}), NextAction(Action.ADVANCE, seq=6)),
        (Answer(200, {}), NextAction(Action.BACK_OFF)),
        (Answer(200, {"acked_seq": True}), NextAction(Action.BACK_OFF)),
        (Answer(200, {"acked_seq": "6"}), NextAction(Action.BACK_OFF)),
        (Answer(404, {"type": "/errors/run-not-found"}), NextAction(Action.RESEND_RUN)),
        (Answer(404, {}), NextAction(Action.BACK_OFF)),
        (Answer(409, {"type": "/errors/stream-gap", "expected_seq": 3}), NextAction(Action.REWIND, seq=3)),
        (Answer(409, {"type": "/errors/stream-gap"}), NextAction(Action.BACK_OFF)),
        (Answer(409, {"type": "/errors/stream-conflict"}), NextAction(Action.NEW_STREAM)),
        (Answer(409, {"type": "/errors/too-many-streams"}), NextAction(Action.BACK_OFF)),
        (Answer(409, {"type": "https://example.org/errors/stream-conflict"}), NextAction(Action.BACK_OFF)),
        (Answer(409, {}), NextAction(Action.BACK_OFF)),
        (Answer(413, {}), NextAction(Action.SHRINK)),
        (Answer(413, problem("body-too-large")), NextAction(Action.SPLIT)),
        (Answer(422, {}), NextAction(Action.BACK_OFF)),
        (Answer(422, problem("invalid-input")), NextAction(Action.SPLIT)),
        (Answer(400, {}), NextAction(Action.BACK_OFF)),
        (Answer(400, problem("bad-request")), NextAction(Action.BACK_OFF)),
        (Answer(401, {}), NextAction(Action.BACK_OFF)),
        (Answer(401, problem("not-authenticated")), NextAction(Action.WAIT, wait_seconds=60)),
        (Answer(403, problem("not-allowed")), NextAction(Action.WAIT, wait_seconds=60)),
        (Answer(415, problem("media-type-not-supported")), NextAction(Action.WAIT, wait_seconds=60)),
        (Answer(426, problem("version-not-supported")), NextAction(Action.WAIT, wait_seconds=60)),
        (Answer(410, {}), NextAction(Action.BACK_OFF)),
        (Answer(410, problem("run-deleted")), NextAction(Action.STOP)),
        (Answer(429, problem("too-many-batches"), "7"), NextAction(Action.WAIT, wait_seconds=7)),
        (Answer(429, {}, "7"), NextAction(Action.BACK_OFF, wait_seconds=7)),
        (Answer(503, problem("database-unreachable"), "7.5"), NextAction(Action.WAIT, wait_seconds=7.5)),
        (Answer(503, {}), NextAction(Action.BACK_OFF)),
        (Answer(503, {}, "-1"), NextAction(Action.BACK_OFF)),
        (Answer(503, {}, "soon"), NextAction(Action.BACK_OFF)),
        (Answer(503, {}, "nan"), NextAction(Action.BACK_OFF)),
        (Answer(429, problem("too-many-batches"), "1e99"), NextAction(Action.WAIT, wait_seconds=3600)),
        (Answer(429, {}, "1e99"), NextAction(Action.BACK_OFF, wait_seconds=60)),
        (Answer(500, {}), NextAction(Action.BACK_OFF)),
        (Answer(301, {}), NextAction(Action.BACK_OFF)),
        (Answer(204, {}), NextAction(Action.BACK_OFF)),
    ],
)
def test_each_answer_has_one_consequence(answer, decision):
    assert decide(answer) == decision


@pytest.mark.parametrize(("status", "told"), [(500, 6), (204, 6), (200, -1)])
def test_an_account_of_records_is_a_number_that_is_given_with_200_alone(status, told):
    assert Answer(status, {"acked_seq": told}).acked_seq is None


@pytest.mark.parametrize(
    ("status", "body", "database"),
    [
        (200, {"acked_seq": 6, "database_id": "one"}, "one"),
        (409, problem("stream-gap") | {"database_id": "one"}, "one"),
        (200, {"acked_seq": 6, "database_id": 1}, None),
        (200, {"acked_seq": 6}, None),
        (200, {"database_id": "a proxy's"}, None),
    ],
)
def test_which_database_there_is_is_a_text_that_a_server_of_ours_says(status, body, database):
    assert Answer(status, body).database_id == database


def test_a_date_to_retry_after_is_understood():
    date = email.utils.formatdate(time.time() + 100, usegmt=True)

    assert retry_after_seconds(date) == pytest.approx(100, abs=2)


@pytest.mark.parametrize(
    "date", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2026 00:00:00 +9999999999999999999", "soon"]
)
def test_a_date_that_is_none_is_no_time_to_wait(date):
    assert retry_after_seconds(date) is None


@pytest.mark.parametrize(("header", "seconds"), [("0", 0.0), ("7", 7.0), ("-1", None), ("nan", None), ("inf", 3600.0)])
def test_seconds_to_retry_after_are_none_where_they_make_no_sense(header, seconds):
    assert retry_after_seconds(header) == seconds
