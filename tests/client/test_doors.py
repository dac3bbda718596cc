"""Without noisescale-lab the names of the lab say how to get it."""

import importlib.util
import inspect

import pytest

import noisescale
from noisescale import commands, lazy


@pytest.fixture
def no_lab(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, package=None: None if name == "noisescale_lab" else find(name)
    )


@pytest.mark.parametrize("name", ["branch", "follow", "sweep"])
def test_a_name_of_the_lab_says_how_to_get_it_when_it_is_called(no_lab, name):
    door = getattr(noisescale, name)

    with pytest.raises(ModuleNotFoundError, match=rf"noisescale\.{name}\(\) is part of noisescale-lab.*pip install"):
        door("anything", batch_size=8)


def test_listing_the_names_of_the_package_needs_no_lab(no_lab):
    names = {name for name, _ in inspect.getmembers(noisescale)}

    assert {"branch", "follow", "sweep", "watch"} <= names


@pytest.mark.parametrize(
    ("arguments", "install"),
    [
        (["import", "table", "runs.csv", "--dry-run"], lazy.INSTALL_IMPORTERS),
        (["reproduce", "--quick", "--seed", "3"], lazy.INSTALL_LAB),
        (["up", "--port", "80"], lazy.INSTALL_SERVER),
    ],
)
def test_a_command_that_is_not_installed_says_how_to_get_it(monkeypatch, capsys, arguments, install):
    monkeypatch.setattr(commands, "entry_points", lambda group: ())

    status = commands.main(arguments)

    assert status == 2
    assert install in capsys.readouterr().err
