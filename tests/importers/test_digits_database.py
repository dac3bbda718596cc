"""Real trainings in the layout of Shallue et al. 2018: three optimizers, six batch sizes, twenty trials each."""

import pytest
import torch

from places import TESTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS.parent / "benchmarks"))
    import benchmark_between_runs as trained

    torch.set_num_threads(1)  # the tensors are small
    monkeypatch.setattr(trained, "NUM_STEPS", 200)
    data = trained.digits()
    for optimizer in trained.OPTIMIZERS:
        for batch in trained.BATCHES:
            trained.train(tmp_path / "db", data, (), optimizer, batch, {})
    return tmp_path / "db"


def test_every_optimizer_has_steps_to_result_regimes_and_quality_and_they_stand_beside_each_other(imports, database):
    said = imports("shallue", database, "--metric", "val/cross_entropy_error", "--target", "0.6")
    again = imports("shallue", database, "--no-sweep")

    sweeps = imports.rest.get("/sweeps", params={"project": imports.project}).json()["sweeps"]
    assert (said.status, again.num_new) == (0, 0), said.text
    assert sorted(sweep["task"] for sweep in sweeps) == [f"digits/mlp/{one}" for one in ("adam", "momentum", "sgd")]
    for sweep in sweeps:
        [found] = imports.rest.get(f"/sweeps/{sweep['id']}/critical-batch").json()["targets"]
        steps = [point["steps"] for point in found["points"] if point["steps"] is not None]
        assert sweep["num_runs"] == 120
        assert all(point["num_learning_rates"] == 20 for point in found["points"])
        assert len(steps) >= 3
        assert steps[0] > steps[-1]  # the largest batch takes fewer steps than the smallest
        assert found["fit"] is not None or found["refusal"]["explanation"]
    assert said.text.count("given time, by batch") == 3
    assert "noise scale between runs (different parameters" in said.text
