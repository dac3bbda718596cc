"""What imported runs say together: sweeps and fits, noise scales between runs, and what is missing."""

import json
import math
import random
import re

import numpy as np
import pytest

from places import TESTS

FACTS = TESTS.parent / "server/src/noisescale_server/data/language_model_batch_sizes.json"
CRITICAL = {"85M": 1.12e6, "151M": 1.66e6, "302M": 2.78e6, "604M": 4.05e6, "1.2B": 5.70e6}
THEIR_OWN = {"85M": 745, "151M": 955, "302M": 1394, "604M": 1889, "1.2B": 2533}


def sweeps_of(imports):
    found = imports.rest.get("/sweeps", params={"project": imports.project}).raise_for_status().json()["sweeps"]
    return {sweep["task"]: sweep for sweep in found}


def fit_of(imports, sweep, **query):
    answer = imports.rest.get(f"/sweeps/{sweep['id']}/critical-batch", params=query).raise_for_status().json()
    return answer["targets"][0]


def overhead_batch(curve, *, start=256, overhead=1.2):
    """By Zhang et al. 2024: where steps are 1.2 times those of perfect scaling from 256, on the fitted curve."""
    batches, examples = np.log([[p["batch_size"], p["batch_size"] * p["steps"]] for p in curve]).T
    wanted = np.interp(math.log(start), batches, examples) + math.log(overhead)
    after = batches > math.log(start)
    return math.exp(np.interp(wanted, examples[after], batches[after]))


@pytest.mark.slow
def test_zhangs_five_sweeps_from_a_table_give_their_critical_batches_by_both_definitions(imports, tmp_path):
    rows = ["num_parameters,sequence_length,target_loss,batch_size,steps_to_target"]
    for sweep in json.loads(FACTS.read_text())["sweeps"]:
        for size, steps in zip(sweep["batch_size_sequences"], sweep["steps_to_target"], strict=True):
            rows.append(f"{sweep['num_parameters']},512,{sweep['target']['value']},{size},{steps}")
    (tmp_path / "zhang.csv").write_text("\n".join(rows) + "\n")

    said = imports("table", tmp_path / "zhang.csv")

    assert said.status == 0, said.text
    found = sweeps_of(imports)
    assert len(found) == 5
    for size, tokens in CRITICAL.items():
        [sweep] = [one for task, one in found.items() if f"num_parameters {size}" in task]
        fit = fit_of(imports, sweep)
        sequences = fit["fit"]["critical_batch"]["value"]
        assert sequences * 512 == pytest.approx(tokens, rel=0.1), size
        assert overhead_batch(fit["curve"]) == pytest.approx(THEIR_OWN[size], rel=0.05), size


def written_runs(folder, batches, *, critical=400, min_steps=150, noise=0.02, columns="", seed=0):
    """Runs whose loss is a power law of steps counted in S_min (1 + B_crit / B)."""
    rng = random.Random(seed)
    folder.mkdir()
    for batch in batches:
        slow = 1 + critical / batch
        steps = [round(1.1**k) for k in range(8, 100) if 1.1**k < 6 * min_steps * slow]
        lines = ["step,loss,val_loss,grad_norm,batch_size,lr"]
        for step in dict.fromkeys(steps):
            loss = 3.0 * (1 + step / (min_steps * slow)) ** -0.5
            norm = (loss**2 * (1 + 200 / batch)) ** 0.5 * (1 + noise * rng.gauss(0, 1))
            lines.append(f"{step},{loss * (1 + noise * rng.gauss(0, 1))},{loss},{norm},{batch},{0.1}")
        (folder / f"batch {batch}.csv").write_text("\n".join(lines) + "\n")


def test_runs_at_several_batch_sizes_become_a_sweep_with_proposed_targets_and_a_fit(imports, tmp_path):
    written_runs(tmp_path / "runs", (16, 64, 256, 1024, 4096))

    said = imports("table", tmp_path / "runs", "--finished", "--task", "power law")

    [sweep] = sweeps_of(imports).values()
    fit = fit_of(imports, sweep)["fit"]["critical_batch"]
    assert (sweep["task"], sweep["metric"], sweep["num_runs"]) == ("power law", "val_loss", 5)
    assert len(sweep["targets"]) >= 2
    assert fit["value"] == pytest.approx(400, rel=0.1)
    assert f"B_crit {fit['value']:.4g}"[:10] in said.text
    assert "val_loss as it was evaluated" in said.text


def test_without_an_evaluation_the_training_loss_is_smoothed_and_gives_the_same(imports, tmp_path):
    written_runs(tmp_path / "runs", (16, 64, 256, 1024, 4096))

    imports("table", tmp_path / "runs", "--finished", "--metric", "none")

    [sweep] = sweeps_of(imports).values()
    assert sweep["metric"] is None
    assert fit_of(imports, sweep)["fit"]["critical_batch"]["value"] == pytest.approx(400, rel=0.25)


def test_norms_at_several_batch_sizes_give_a_noise_scale_between_runs_that_says_what_it_is(imports, tmp_path):
    written_runs(tmp_path / "runs", (16, 64, 256, 1024))

    said = imports("table", tmp_path / "runs", "--finished")

    values = [float(found.replace(",", "")) for found in re.findall(r"loss [\d.]+: ([\d,.]+) \[", said.text)]
    [sweep] = sweeps_of(imports).values()
    kept = sweep["noise_scale_between_runs"]
    assert "different parameters" in said.text
    assert len(values) >= 3
    assert all(value == pytest.approx(200, rel=0.25) for value in values)
    assert (kept["kind"], kept["flag"]) == ("between_runs", "different_parameters")
    assert all(one["low"] < 200 < (one["high"] or 1e9) for one in kept["losses"])


def test_a_grown_source_has_the_newest_noise_scale_between_runs_on_its_page(imports, tmp_path):
    written_runs(tmp_path / "runs", (16, 64, 256))
    imports("table", tmp_path / "runs", "--running")
    [before] = sweeps_of(imports).values()
    for path in (tmp_path / "runs").iterdir():
        head, *rows = path.read_text().splitlines()
        more = [",".join([str(int(row.split(",")[0]) + len(rows)), *row.split(",")[1:]]) for row in rows]
        path.write_text("\n".join([head, *rows, *more]) + "\n")

    said = imports("table", tmp_path / "runs", "--running")

    [after] = sweeps_of(imports).values()
    losses = [one["loss"] for one in after["noise_scale_between_runs"]["losses"]]
    assert losses != [one["loss"] for one in before["noise_scale_between_runs"]["losses"]]
    assert all(f"loss {loss:.4g}:" in said.text for loss in losses)


def test_a_key_that_may_only_write_stores_the_sweep_and_says_that_it_reads_no_answer(imports, tmp_path, monkeypatch):
    written_runs(tmp_path / "runs", (64, 256, 1024))
    body = {"name": "of a job", "scope": "write", "projects": None, "days": 1}
    monkeypatch.setenv("NOISESCALE_API_KEY", imports.rest.post("/keys", json=body).raise_for_status().json()["key"])

    said = imports("table", tmp_path / "runs", "--finished")

    assert said.status == 0, said.text
    assert "what follows from the runs cannot be read" in said.text
    assert [sweep["num_runs"] for sweep in sweeps_of(imports).values()] == [3]


def test_a_run_with_a_ramp_is_compared_with_itself(imports, tmp_path):
    rng, lines = random.Random(1), ["step,loss,grad_norm,batch_size"]
    for step in range(400):
        batch, loss = (32 if (step // 40) % 2 == 0 else 128), 2.0 - step / 400
        norm = (loss**2 * (1 + 100 / batch)) ** 0.5 * (1 + 0.03 * rng.gauss(0, 1))
        lines.append(f"{step},{loss},{norm},{batch}")
    (tmp_path / "ramp.csv").write_text("\n".join(lines) + "\n")

    said = imports("table", tmp_path / "ramp.csv", "--finished")

    assert "noise scale between runs" in said.text
    assert "from batches of 32, 128" in said.text
    assert "no sweep: it takes runs at three batch sizes, there are 0 (none), and 1 runs change theirs" in said.text
    [kept] = sweeps_of(imports).values()
    assert (kept["num_runs"], len(kept["noise_scale_between_runs"]["losses"])) == (0, said.text.count("from batches"))
    assert f"/sweeps/{kept['id']}" in said.text


def test_what_is_missing_for_a_noise_scale_between_runs_is_on_the_sweeps_page(imports, tmp_path):
    written_runs(tmp_path / "runs", (16, 64, 256))

    imports("table", tmp_path / "runs", "--finished", "--gradient-norm", "none")

    [sweep] = sweeps_of(imports).values()
    missing = sweep["noise_scale_between_runs"]["missing"]
    assert missing.startswith("no run has gradient norms: log them before clipping")


@pytest.mark.parametrize(
    ("header", "flags", "sentence"),
    [
        ("step,loss", [], "no sweep: no run has a batch size: give it by --batch"),
        ("step,loss", ["--batch", "8"], "it takes runs at three batch sizes, there are 1 (8)"),
        ("step,loss", ["--batch", "8"], "no noise scale between runs: no run has gradient norms"),
        ("step,grad_norm", ["--batch", "8"], "no run has a training loss, at which the runs could be compared"),
        ("step,loss,grad_norm", ["--batch", "8"], "all runs have a batch of 8: it takes two batch sizes"),
        ("step,loss,grad_norm", ["--batch", "8", "--clipped"], "clipped gradients, which say nothing of |G|²"),
    ],
)
def test_where_nothing_follows_the_sentence_says_what_is_missing(imports, tmp_path, header, flags, sentence):
    count = header.count(",")
    (tmp_path / "run.csv").write_text(header + "\n" + "".join(f"{k}{',1.5' * count}\n" for k in range(20)))

    said = imports("table", tmp_path / "run.csv", "--finished", *flags)

    assert sentence in said.text


@pytest.mark.slow
def test_a_table_with_one_row_a_run_gives_sweeps_at_equal_loss(imports, tmp_path):
    """Of the kind of the Step Law's table: size, tokens, batch, rate and the loss at the end."""
    critical, lines = 2e6, ["size,tokens,batch_tokens,lr,loss"]
    for size in (200, 400):
        for tokens in (2e9, 4e9, 8e9, 16e9):
            for batch in (262144, 524288, 1048576, 2097152, 4194304, 8388608):
                for rate, worse in ((1e-3, 0.0), (3e-3, 0.02))[: 2 if (size, tokens) == (200, 4e9) else 1]:
                    effective = tokens / (1 + batch / critical)
                    lines.append(f"{size},{tokens},{batch},{rate},{1.7 + 400 / effective**0.3 + worse}")
    (tmp_path / "grid.csv").write_text("\n".join(lines) + "\n")

    said = imports("table", tmp_path / "grid.csv")

    found = sweeps_of(imports)
    assert said.status == 0, said.text
    assert sorted(found) == ["size 200", "size 400"]
    for sweep in found.values():
        assert sweep["unit"] == "tokens"
        assert fit_of(imports, sweep)["fit"]["critical_batch"]["value"] == pytest.approx(critical, rel=0.1)


def test_times_give_the_seconds_of_a_step(imports, tmp_path):
    lines = ["step,loss,batch_size,elapsed", *(f"{k},{2 - k / 100},32,{k * 0.25}" for k in range(50))]
    (tmp_path / "timed.csv").write_text("\n".join(lines) + "\n")

    said = imports("table", tmp_path / "timed.csv", "--finished")

    assert "a step takes, by batch: 32: 0.25 s" in said.text


def test_times_and_a_price_give_what_the_target_takes_and_costs(imports, tmp_path):
    """Steps by S_min (1 + B_crit / B) = 100 (1 + 256 / B), a step of 36 s, 2 USD an hour."""
    (tmp_path / "runs").mkdir()
    for batch in (16, 64, 256, 1024):
        slow, lines = 100 * (1 + 256 / batch), ["step,eval_loss,batch_size,elapsed"]
        lines += [f"{k},{3 / (1 + (k + 1) / slow)},{batch},{36 * k}" for k in range(0, 6000, 20)]
        (tmp_path / "runs" / f"{batch}.csv").write_text("\n".join(lines) + "\n")

    said = imports("table", tmp_path / "runs", "--finished", "--target", "1.5", "--price", "2")

    assert "to 1.5, by batch: 16: 17 h and 34 USD a device, 64: 5 h and 10 USD" in said.text
