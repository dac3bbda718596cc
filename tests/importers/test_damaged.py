"""Damaged files of every format: none crashes the import, none brings a wrong number, and each is named."""

import os
import random
import shutil
from pathlib import Path

import pytest

from damaged import DAMAGES, NUM_STEPS, WRITERS, flip, hostile_name, is_true, truth
from imported import Said
from noisescale_importers.source import shown


def written(folder: Path, format_: str, number: int, rng: random.Random, offline: Path) -> tuple[str, Path]:
    """The importer and a file that something has happened to, in a folder of a hostile name."""
    importer, name, write = WRITERS.get(format_) or ("wandb", "run-x.wandb", lambda path: shutil.copy(offline, path))
    inside = os.fsencode(str(folder)) + b"/" + hostile_name(number).encode("utf-8", "surrogateescape")
    os.makedirs(inside)
    path = Path(os.fsdecode(inside)) / name
    write(path)
    rng.choice(DAMAGES)(path, rng)
    return importer, path


def losses(imports, run):
    name = "eval_loss" if "eval_loss" in imports.rest.get(f"/runs/{run['id']}/metrics").json()["names"] else None
    return imports.metric(run["id"], name) if name else imports.losses(run["id"])


def check(imports, offline_run, tmp_path, num_files, seed):
    [offline] = offline_run.glob("offline*/*.wandb")
    rng, of_importer = random.Random(seed), {}
    formats = [*WRITERS, "wandb"]
    for number in range(num_files):
        kind = formats[number % len(formats)]
        importer, path = written(tmp_path / kind, kind, number, rng, offline)
        of_importer.setdefault(importer, []).append(path)
    num_runs = 0
    for importer, paths in of_importer.items():
        if importer == "wandb":  # copies of one run, each taken for another source
            told = [imports(importer, path, "--as", f"{k}", "--no-sweep") for k, path in enumerate(paths)]
            said = Said(min(one.status for one in told), "".join(one.text for one in told))
        else:
            said = imports(importer, *sorted({path.parents[1] for path in paths}), "--finished", "--no-sweep")
        assert said.status == 1
        assert "Traceback" not in said.text
        for path in paths:
            whole = shown(str(path)) if importer != "tensorboard" else shown(str(path.parent))
            assert whole in said.text, (importer, path)
    for run in imports.runs():
        num_runs += 1
        found = [(step, loss) for step, loss in losses(imports, run) if loss is not None]
        assert len(found) <= 60
        assert all(is_true(step, loss) for step, loss in found), (run["name"], found)
        for stream in imports.streams(run["id"]):
            assert stream["acked_seq"] == stream["num_stored"] + stream["num_lost"] + stream["num_rejected"]
    return num_runs


@pytest.mark.slow
def test_a_few_damaged_files_crash_nothing_bring_no_wrong_number_and_are_named(imports, offline_run, tmp_path):
    assert check(imports, offline_run, tmp_path, 14, seed=1) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_two_hundred_damaged_files_crash_nothing_bring_no_wrong_number_and_are_named(
    imports, offline_run, tmp_path, seed
):
    assert check(imports, offline_run, tmp_path, 200, seed) >= 70


def test_a_flipped_bit_in_a_table_costs_one_row_and_not_the_others(imports, tmp_path):
    importer, name, write = WRITERS["csv"]
    write(tmp_path / name)
    flip(tmp_path / name, random.Random(5))

    imports(importer, tmp_path / name, "--finished", "--no-sweep")

    assert len(imports.losses(imports.run()["id"])) == NUM_STEPS - 1


def test_a_metric_of_a_hostile_name_is_left_out_and_said_once(imports, tmp_path):
    rows = "".join(f"{k},{truth(k)},1\n" for k in range(9))
    (tmp_path / "run.csv").write_text(f"step,loss,{'x' * 300}\n{rows}")

    said = imports("table", tmp_path / "run.csv", "--finished", "--no-sweep")

    assert said.text.count("is left out: its name is no printable text") == 1
    assert len(imports.losses(imports.run()["id"])) == 9


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00" * 100, b"step,loss\n", b"1,2\n3,4\n", b"a,a\n1,2\n", b"{"])
def test_a_file_without_a_table_is_named_and_makes_no_run(imports, tmp_path, content):
    (tmp_path / "run.csv").write_bytes(content)

    said = imports("table", tmp_path / "run.csv", "--finished")

    assert said.status == 1
    assert "run.csv" in said.text
    assert imports.runs() == []
