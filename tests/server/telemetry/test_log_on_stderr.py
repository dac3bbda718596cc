"""A server whose errors are counted still says them."""

import logging

from noisescale_server.process.own_metrics import ProcessMetrics


def test_what_is_counted_is_written_to_stderr_all_the_same(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    with ProcessMetrics().watching_the_log():
        logging.getLogger("noisescale_server.somewhere").warning("Postgres was killed")

    assert capsys.readouterr().err == "Postgres was killed\n"
    assert logging.getLogger().handlers == []


def test_where_somebody_else_writes_the_log_nothing_is_written_twice(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])

    with ProcessMetrics().watching_the_log():
        logging.getLogger("noisescale_server.somewhere").warning("Postgres was killed")

    assert capsys.readouterr().err == ""
