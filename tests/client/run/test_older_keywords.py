"""Keywords that went into option objects keep working, with a note, once each."""

import logging

import pytest
import torch

import noisescale
from noisescale.options import renewed
from noisescale.run import active_run
from noisescale.run.run import Run


@pytest.fixture(autouse=True)
def heard(caplog, tmp_path, monkeypatch):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setattr("noisescale.options._notices._said", set())
    caplog.set_level(logging.INFO, logger="noisescale")
    return caplog


def notes(heard):
    return [record.getMessage() for record in heard.records if "goes on working" in record.getMessage()]


def test_a_run_is_described_alike_by_older_keywords_and_by_objects():
    with noisescale.init(
        mode="disabled", example="sequence", unit="tokens", units_per_example=1024, num_devices=8, device="H100",
        usd_per_device_hour=2.5, log_every=3, url="http://localhost:1", strict=True,
    ) as older:  # fmt: skip
        pass
    with noisescale.init(
        mode="disabled",
        units=noisescale.Units("sequence", "tokens", per_example=1024),
        machine=noisescale.Machine(8, "H100", 2.5),
        delivery=noisescale.Delivery(log_every=3, url="http://localhost:1", strict=True),
    ) as newer:
        pass

    assert older.description == newer.description
    assert older.config == newer.config


def test_each_older_keyword_is_noted_once_with_what_it_is_now(heard):
    for _ in range(2):
        noisescale.init(mode="disabled", unit="tokens").finish()

    assert notes(heard) == [
        "init(unit=...) is init(units=noisescale.Units(unit=...)) now; the older keyword goes on working"
    ]


def test_a_call_by_objects_is_not_noted(heard):
    noisescale.init(mode="disabled", units=noisescale.Units(unit="tokens")).finish()

    assert not notes(heard)


def test_what_a_callback_knows_holds_beside_what_else_is_said_of_the_loss_and_of_the_machine():
    assert noisescale.Loss(reduction="sum").weighed("equal") == noisescale.Loss("sum", "equal")
    assert noisescale.Loss(weighting="by_size").weighed("equal").weighting == "by_size"
    assert noisescale.Machine(device="H100").of_world(8).num_devices == 8
    assert noisescale.Machine(num_devices=1).of_world(8).num_devices == 1


def test_an_older_keyword_beside_its_object_is_refused():
    with pytest.raises(noisescale.ConfigError, match=r"init\(\) got unit beside units: give units=noisescale.Units"):
        noisescale.init(mode="disabled", unit="tokens", units=noisescale.Units())


@pytest.mark.parametrize("watch", ["of the run", "of the package"])
def test_a_model_is_watched_alike_by_older_keywords(watch):
    model = torch.nn.Linear(4, 1)
    run = noisescale.init(mode="offline")
    call = run.watch if watch == "of the run" else noisescale.watch

    call(model, accumulate="fp32", loss_reduction="sum")

    assert run._main._stream.loss_reduction == "sum"
    assert run._main.watch._options.accumulate == "fp32"
    run.finish()


def test_an_older_keyword_makes_the_first_run_of_a_plain_script():
    active_run._active.clear()

    noisescale.watch(torch.nn.Linear(4, 1), weighting="equal")

    assert active_run.current().is_watching
    noisescale.finish()


def test_a_keyword_that_never_was_is_refused_as_ever():
    with pytest.raises(TypeError, match="units_per_token"):
        noisescale.init(units_per_token=4)
    with pytest.raises(TypeError, match="overheads"):
        Run.watch(None, None, overheads=0.1)


def test_a_function_without_older_keywords_gets_its_own():
    assert renewed(len, {"unit": 1}) == {"unit": 1}
