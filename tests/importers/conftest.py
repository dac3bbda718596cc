"""A real server on a database of its own for all files, and an importer that writes to it as a person would."""

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import httpx
import pytest

from imported import Imports
from noisescale import commands
from noisescale_importers import source
from served_app import TOKEN, served_app


@pytest.fixture(scope="session")
def import_server(new_database: Callable[[], str]) -> Iterator[str]:
    """The address of the server."""
    with served_app(new_database()) as url:
        yield url


found_once = functools.cache(entry_points)


@pytest.fixture
def imports(import_server: str, tmp_path: Path, monkeypatch, capsys, request) -> Iterator[Imports]:
    """The command, in a project of the test's own, and what the server has of it."""
    # each command reads what all of a hundred distributions name; those of this process stay as they are
    monkeypatch.setattr(commands, "entry_points", found_once)
    monkeypatch.setattr(source, "entry_points", found_once)
    monkeypatch.setenv("NOISESCALE_URL", import_server)
    monkeypatch.setenv("NOISESCALE_API_KEY", TOKEN)
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "state"))
    # to read the certificates of the world takes 20 ms, and there is none on loopback
    with httpx.Client(
        base_url=f"{import_server}/api/v1", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30, verify=False
    ) as rest:
        yield Imports(rest, capsys, request.node.name[:200])


@pytest.fixture(scope="session")
def offline_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that an offline run of W&B has left; beside it, in `twice`, two projects with a run of one id."""
    folder = tmp_path_factory.mktemp("offline")
    script = """
import os, wandb
quiet = wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True)
run = wandb.init(project="digits", name="hello", config={"batch_size": 32, "optimizer": {"lr": 0.1}}, settings=quiet)
for k in range(60):
    run.log({"loss": 5 + k / 64, "grad_norm": 1 / (1 + k), "long": {f"metric {j}": j + k / 60 for j in range(20)}})
run.finish()
os.mkdir("twice")
for project, first in (("a", 1.0), ("b", 2.0)):
    run = wandb.init(project=project, id="baseline", dir="twice", settings=quiet)
    for k in range(3):
        run.log({"loss": first + k})
    run.finish()
"""
    environment = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, check=True, timeout=120)
    return folder / "wandb"
