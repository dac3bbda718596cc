from dataclasses import replace
from pathlib import Path

import pytest

from noisescale.config import Config
from noisescale_core.errors import ConfigError
from noisescale_lab.reproduce.claim import campaign as campaigns
from noisescale_lab.reproduce.claim.campaign import Campaign, run_campaign
from noisescale_lab.reproduce.claim.exact_quadratics import QuadraticCheck
from noisescale_lab.reproduce.claim.judged.findings import findings
from noisescale_lab.reproduce.claim.report.files import write_files
from noisescale_lab.reproduce.claim.report.tables import tables
from noisescale_lab.reproduce.claim.task_result import read, write
from reproduced_tasks import make_result


def make_campaign(folder: Path, *tasks: str, seed: int = 0) -> Campaign:
    return Campaign(folder, "quick", seed, tasks, 1, Config(mode="disabled"))


@pytest.mark.slow
def test_a_task_gives_the_same_figures_again_and_they_survive_a_file(tmp_path: Path) -> None:
    ((first,), _) = run_campaign(make_campaign(tmp_path / "first", "iris_softmax"), lambda line: None)
    ((second,), _) = run_campaign(make_campaign(tmp_path / "second", "iris_softmax"), lambda line: None)

    assert replace(first, seconds=0) == replace(second, seconds=0)
    assert read(tmp_path / "first" / "iris_softmax.json") == first
    assert first.targets[1].exclusion is None
    assert first.targets[1].near_critical == pytest.approx(first.targets[1].exact_near_critical, rel=0.3)


def test_tasks_that_are_there_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = make_result("digits_mlp")
    write(kept, tmp_path / "digits_mlp.json")
    ran = []

    def measure(name: str, *_: object, **__: object) -> object:
        ran.append(name)
        return make_result(name)

    monkeypatch.setattr(campaigns, "measure_task", measure)
    monkeypatch.setattr(campaigns, "check_quadratics", lambda: ())
    said: list[str] = []

    results, _ = run_campaign(make_campaign(tmp_path, "digits_mlp", "iris_softmax"), said.append)

    assert ran == ["iris_softmax"]
    assert results == (kept, make_result("iris_softmax"))
    assert said[0] == f"1 of 2 tasks were there already, in {tmp_path}"


def test_a_folder_of_another_seed_is_refused(tmp_path: Path) -> None:
    write(make_result("digits_mlp", seed=3), tmp_path / "digits_mlp.json")

    with pytest.raises(ConfigError, match="seed 3, this one is quick with seed 0: name another folder"):
        run_campaign(make_campaign(tmp_path, "digits_mlp"), lambda line: None)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "digits_mlp.json").write_text("{}")

    with pytest.raises(ConfigError, match=r"digits_mlp\.json holds no result of a task"):
        run_campaign(make_campaign(tmp_path, "digits_mlp"), lambda line: None)


def test_tables_and_files_hold_every_task_and_each_figure_with_its_interval(tmp_path: Path) -> None:
    results = [make_result(f"task_{place}", critical_batch=3.0**place, noise_scale=2.5**place) for place in range(1, 7)]
    found = findings(results, [QuadraticCheck("quadratic_isotropic", 20, 20, 19, 38.2, 37.2, 37.7)])

    text = tables(found)
    folder = write_files(tmp_path, found)

    assert "task_6" in text
    assert "r² fit" in text
    assert "quadratic_isotropic" in text
    assert {path.name for path in folder.iterdir()} == {
        "targets.csv",
        "steps.csv",
        "windows.csv",
        "figures.csv",
        "summary.json",
    }
    header, first = (folder / "figures.csv").read_text().splitlines()[:2]
    assert header == "average,targets,tasks,points,figure,value,low,high"
    assert first.startswith("near_critical,hardest,all tasks,6,r_squared_of_fit,")
