"""A plug-in is one object behind an entry point; the distribution brings the client and nothing else."""

import sys
import zipfile
from email.parser import Parser
from importlib.metadata import EntryPoint

import pytest

import wheels
from imported import close
from noisescale_importers import source
from noisescale_importers.source import Row, SourceRun


class Counting:
    """An importer of somebody else's: one run, whose losses it makes up."""

    def find(self, sources, options):
        rows = [Row({"loss": 2.0 + k}, k, None, f"row {k}") for k in range(int(options["rows"]))]
        yield SourceRun(identity=sources[0], place=sources[0], rows=lambda: iter(rows), config={"batch_size": 4})


counting = Counting()


def test_an_importer_of_somebody_else_needs_an_entry_point_and_a_find(imports, monkeypatch):
    monkeypatch.setitem(sys.modules, "counting_plug_in", sys.modules[__name__])
    point = EntryPoint("counting", "counting_plug_in:counting", source.GROUP)
    monkeypatch.setattr(source, "entry_points", lambda group: [point])

    said = imports("counting", "nothing", "--option", "rows=5", "--finished", "--no-sweep")

    assert said.status == 0, said.text
    assert close(imports.losses(imports.run()["id"]), [(k, 2.0 + k) for k in range(5)])


def test_an_importer_that_nobody_has_is_refused_with_those_that_there_are(imports):
    said = imports("comet", "nothing")

    assert said.status == 2
    assert "no importer is called 'comet': there are log, mlflow, mlperf, shallue, table" in said.text


@pytest.mark.processes
def test_the_wheel_needs_the_client_alone_and_names_its_readers_as_extras(tmp_path):
    with zipfile.ZipFile(wheels.build("importers", tmp_path)) as wheel:
        names = wheel.namelist()
        about = Parser().parsestr(wheel.read(next(one for one in names if one.endswith("METADATA"))).decode())

    needed = [line for line in about.get_all("Requires-Dist") if "extra ==" not in line]
    assert needed == ["noisescale"]
    assert sorted(about.get_all("Provides-Extra")) == ["mlflow", "tensorboard", "wandb"]
    assert "noisescale_importers/py.typed" in names
    assert not [one for one in names if one.startswith(("noisescale/", "noisescale_core/"))]
