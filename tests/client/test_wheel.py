"""The published wheel: what it needs and what is in it."""

import zipfile
from email.parser import Parser

import pytest

import noisescale
import wheels

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    with zipfile.ZipFile(wheels.build("client", tmp_path_factory.mktemp("wheel"))) as opened:
        yield opened


def metadata(wheel):
    name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_it_needs_httpx_and_nothing_else(wheel):
    needed = [line for line in metadata(wheel).get_all("Requires-Dist") if "extra ==" not in line]

    assert needed == ["httpx>=0.27"]


def test_each_extra_serves_one_integration_or_assistants(wheel):
    extras = metadata(wheel).get_all("Provides-Extra")

    assert sorted(extras) == ["accelerate", "huggingface", "lightning", "mcp", "mlflow", "tensorboard", "wandb"]


def test_its_version_is_the_one_in_the_code(wheel):
    assert metadata(wheel)["Version"] == noisescale.__version__


def test_it_holds_the_package_with_its_types_and_no_test(wheel):
    names = wheel.namelist()

    assert "noisescale/py.typed" in names
    assert "noisescale_core/py.typed" in names
    assert not [name for name in names if name.startswith("noisescale_lab/")]
    assert "noisescale/capture/hooks/hooks.py" in names
    assert not [name for name in names if any(part.startswith(("test_", "tests")) for part in name.split("/"))]
