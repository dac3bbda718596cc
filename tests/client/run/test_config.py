import argparse
import json
from pathlib import Path

import pytest

import noisescale
from noisescale.config import DEFAULT_URL, Config
from noisescale.description import RunDescription, storable_config
from noisescale_core.errors import ConfigError
from secrets_in_configs import HARMLESS, SECRETS

RUN_ID = "7d1f0c9e-2222-4333-8444-555566667777"


def test_an_argument_beats_the_environment_and_that_beats_the_default():
    environ = {"NOISESCALE_PROJECT": "environment", "NOISESCALE_TASK": "environment", "NOISESCALE_DIR": "/nowhere"}

    config = Config.from_env(environ, project="argument", task=None)

    assert (config.project, config.task, config.url) == ("argument", "environment", DEFAULT_URL)


def test_every_setting_can_come_from_the_environment():
    environ = {
        "NOISESCALE_URL": "https://example.org",
        "NOISESCALE_API_KEY": "ns_w_key",
        "NOISESCALE_MODE": "disabled",
        "NOISESCALE_RUN_ID": RUN_ID,
        "NOISESCALE_NAME": "first",
        "NOISESCALE_LOG_EVERY": "50",
        "NOISESCALE_GROUP_SECONDS": "2.5",
        "NOISESCALE_STRICT": "1",
        "RANK": "3",
        "NOISESCALE_KERNELS": "torch",
        "NOISESCALE_DIR": "/data/spools",
        "XDG_STATE_HOME": "/home/me/state",
        "NOISESCALE_DURABILITY": "async",
    }

    config = Config.from_env(environ)

    assert config == Config(
        "https://example.org", "ns_w_key", "disabled", "default", "default", RUN_ID, "first", 50, 2.5, True, 3, "torch",
        (Path("/data/spools"), Path("/home/me/state/noisescale")), "async",
    )  # fmt: skip


def test_records_wait_in_the_users_folder_and_in_memory_where_there_is_none(monkeypatch):
    def no_home():
        raise RuntimeError("could not determine home directory")

    assert Config.from_env({"XDG_STATE_HOME": "/state"}).folders == (Path("/state/noisescale"),)
    monkeypatch.setattr(Path, "home", no_home)
    assert Config.from_env({}).folders == ()


def test_an_embedded_server_of_the_same_user_is_found(tmp_path):
    (tmp_path / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:9999", "pid": 1}))
    (tmp_path / "noisescale").mkdir()
    (tmp_path / "noisescale" / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:7777", "pid": 1}))

    assert Config.from_env({"NOISESCALE_DIR": str(tmp_path)}).url == "http://127.0.0.1:9999"
    assert Config.from_env({"XDG_STATE_HOME": str(tmp_path)}).url == "http://127.0.0.1:7777"


def test_a_local_servers_key_comes_with_its_address_and_goes_nowhere_else(tmp_path):
    (tmp_path / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:9999", "pid": 1, "key": "ns_a_k"}))
    here = {"NOISESCALE_DIR": str(tmp_path)}

    assert Config.from_env(here).api_key == "ns_a_k"
    assert Config.from_env(here, url="http://127.0.0.1:9999/").api_key == "ns_a_k"
    assert Config.from_env(here | {"NOISESCALE_URL": "https://team.example"}).api_key is None
    assert Config.from_env(here, url="http://127.0.0.1:9998").api_key is None
    assert Config.from_env(here, api_key="my own").api_key == "my own"
    assert "ns_a_k" not in repr(Config.from_env(here))


def test_a_server_file_that_others_may_write_is_as_good_as_none(tmp_path):
    """Whoever wrote it would be sent this user's records."""
    file = tmp_path / "server.json"
    file.write_text(json.dumps({"url": "http://127.0.0.1:9999", "pid": 1, "key": "ns_a_k"}))
    file.chmod(0o666)

    found = Config.from_env({"NOISESCALE_DIR": str(tmp_path)})

    assert (found.url, found.api_key) == (DEFAULT_URL, None)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"url": 5}'])
def test_a_damaged_server_file_is_as_good_as_none(tmp_path, content):
    (tmp_path / "server.json").write_text(content)

    assert Config.from_env({"NOISESCALE_DIR": str(tmp_path)}).url == DEFAULT_URL


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"NOISESCALE_MODE": "nearline"}, "online, offline, disabled"),
        ({"NOISESCALE_DURABILITY": "maybe"}, "auto, direct, async"),
        ({"NOISESCALE_URL": "localhost:8321"}, "http://127.0.0.1:8321"),
        ({"NOISESCALE_LOG_EVERY": "often"}, "NOISESCALE_LOG_EVERY must be a number, got 'often'"),
        ({"NOISESCALE_LOG_EVERY": "0"}, "at least 1"),
        ({"NOISESCALE_RUN_ID": "mine"}, "UUID"),
        ({"NOISESCALE_GROUP_SECONDS": "nan"}, "at least 0 s"),
        ({"NOISESCALE_KERNELS": "cuda"}, "auto, triton, torch, got 'cuda'"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_value_and_the_way_out(environ, message):
    with pytest.raises(ConfigError, match=message):
        Config.from_env(environ)


def test_the_key_is_not_in_the_repr():
    assert "ns_w" not in repr(Config(api_key="ns_w_key"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"project": ""}, "project"),
        ({"name": "a\nb"}, "printable"),
        ({"tags": "baseline"}, "in a list"),
        ({"tags": ["a", "a"]}, "different"),
        ({"units_per_example": 0}, "positive number, got 0"),
        ({"usd_per_device_hour": -1.0}, "got -1.0"),
        ({"planned_steps": float("nan")}, "planned_steps"),
        ({"config": [1]}, "vars\\(args\\)"),
    ],
)
def test_init_refuses_wrong_arguments(arguments, message):
    with pytest.raises(ConfigError, match=message):
        noisescale.init(mode="disabled", **arguments)


@pytest.mark.parametrize(("config", "stored"), SECRETS, ids=str)
def test_the_job_masks_what_the_rules_say_before_a_record_is_on_disk(config, stored):
    assert storable_config(config) == stored


@pytest.mark.parametrize("config", HARMLESS, ids=str)
def test_the_job_keeps_the_rest(config):
    assert storable_config(config) == config


def test_what_an_object_prints_is_masked_too():
    config = {"args": argparse.Namespace(lr=0.1, hf_token="hunter2"), "path": Path("/data")}

    assert storable_config(config) == {"args": "Namespace(lr=0.1, hf_token='[masked]')", "path": "/data"}


def test_what_is_no_json_becomes_text():
    stored = storable_config(
        {"lr": float("inf"), 3: {1}, "path": object, "shape": (1, 2), "nul": "a\0b\ud800", "big": 1 << 70}
    )

    assert stored == {
        "lr": "inf", "3": "{1}", "path": "<class 'object'>", "shape": [1, 2], "nul": "a\ufffdb\ufffd",
        "big": str(1 << 70),
    }  # fmt: skip


def test_a_config_that_is_too_large_or_deep_is_cut_and_said(caplog):
    deep = current = {}
    for _ in range(30):
        current["in"] = current = {}

    stored = storable_config({"small": 1, "blob": "x" * 70_000, "deep": deep})

    assert set(stored) == {"small", "deep"}
    assert "blob" in caplog.text
    assert len(json.dumps(stored)) < 1000


def test_a_description_gives_the_body_of_a_run():
    body = RunDescription(project="demo", config={"hidden": 64}, planned_steps=1200).to_json()

    assert body == {
        "project": "demo", "task": "default", "tags": [], "config": {"hidden": 64}, "example": "example",
        "unit": "examples", "units_per_example": 1.0, "num_devices": 1, "planned_steps": 1200,
    }  # fmt: skip


def test_secrets_in_a_runs_name_and_tags_are_masked():
    description = RunDescription(name="from https://ada:pw123@host/x", tags=("hf_abcdefghijklmnopqrstuvwxyz012345",))

    body = description.to_json()

    assert "pw123" not in str(body)
    assert body["tags"] == ["[masked]"]
