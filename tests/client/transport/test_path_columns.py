"""Rows with and without news of the path, on disk and on the wire."""

import json

import pytest

from noisescale.transport.spool.frames import HEADER_BYTES, decode, encode
from noisescale.transport.wire import PATH_COLUMNS, PROMISE_COLUMNS, Batch, Measurement, to_json

PLAIN = Measurement(7, 1, 1.79e9, 64, 8.0, 8, 64.0, 1.5, -0.25, 2.25, 0.0625, -0.375, 3.5, 1, 0.1, 0)
WITH_PATH = PLAIN._replace(
    num_path_updates=16,
    sum_update_sq_norm=0.25,
    update_sq_norm_variance=0.0,
    path_sq_distance=0.5,
    path_start=3,
    momentum=0.9,
)

WITH_PROMISE = WITH_PATH._replace(num_promised_updates=12, sum_promised_fall=-0.125, promised_fall_variance=0.0625)
PROMISE_ALONE = PLAIN._replace(num_promised_updates=12, sum_promised_fall=0.125, promised_fall_variance=0.0)


@pytest.mark.parametrize(
    "row",
    [
        PLAIN,
        PLAIN._replace(examples=None, lr=None, sum_loss=None),
        WITH_PATH,
        WITH_PATH._replace(examples=None, path_sq_distance=None),
        WITH_PROMISE,
        PROMISE_ALONE,
        PROMISE_ALONE._replace(examples=None),
    ],
)
def test_a_row_comes_back_from_its_frame_as_it_was(row):
    seq, found = decode(encode(5, row))

    assert (seq, found) == (5, row)
    assert type(found.path_start) is type(row.path_start)


def test_a_row_without_news_takes_the_room_that_it_took_before():
    """And so a file of an older client is read: its rows end there."""
    assert len(encode(5, PLAIN)) - HEADER_BYTES == 16 * 8
    assert len(encode(5, WITH_PATH)) - HEADER_BYTES == 22 * 8
    assert len(encode(5, WITH_PROMISE)) - HEADER_BYTES == 25 * 8


def sent(*rows):
    records = [(seq, row) for seq, row in enumerate(rows, start=1)]
    body = json.loads(to_json(Batch("run", 1, len(rows), 0, "now", records, [])))
    return body["measurements"]


def test_a_batch_without_any_news_leaves_the_columns_out():
    assert not set(PATH_COLUMNS + PROMISE_COLUMNS) & set(sent(PLAIN))


def test_columns_of_a_promise_are_there_where_one_row_has_it_and_those_of_the_path_are_others():
    assert not set(PROMISE_COLUMNS) & set(sent(PLAIN, WITH_PATH))
    assert not set(PATH_COLUMNS) & set(sent(PLAIN, PROMISE_ALONE))
    assert sent(PLAIN, PROMISE_ALONE)["sum_promised_fall"] == [None, 0.125]


def test_a_batch_with_news_in_one_row_has_the_columns_for_all():
    columns = sent(PLAIN, WITH_PATH)

    assert columns["num_path_updates"] == [0, 16]
    assert columns["path_sq_distance"] == [None, 0.5]
    assert columns["path_start"] == [None, 3]
