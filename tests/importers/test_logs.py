"""Text logs as Megatron-LM, torchtitan, nanoGPT and nanochat print them, and the state of a Hugging Face Trainer."""

import json

import pytest

from imported import close

STEPS = range(10, 60, 10)
MEGATRON = (
    """\
using world size: 8, data-parallel size: 8
  global_batch_size ............................... 64
  seq_length ...................................... 1024
"""
    + "".join(
        f" [2025-03-01 12:00:{k:02d}] iteration {k:8d}/     500 | consumed samples: {64 * k:12d} | "
        f"elapsed time per iteration (ms): 345.6 | learning rate: 3.000000E-05 | global batch size:    64 | "
        f"lm loss: {8 - k / 10:.6E} | loss scale: 1.0 | grad norm: {1 + k / 100:.3f} | "
        f"number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for k in STEPS
    )
    + " validation loss at iteration 50 on validation set | lm loss value: 3.250000E+00 | lm loss PPL: 2.5790E+01 | \n"
)
TITAN = (
    "".join(
        f"[titan] 2025-02-07 19:53:{k:02d},123 - root - INFO - \x1b[31mstep: {k:2}  \x1b[32mloss: {8 - k / 10:8.5f}  "
        f"\x1b[38;2;180;60;0mgrad_norm: {1 + k / 100:7.4f}  \x1b[36mmemory: 10.22GiB(12.90%)  \x1b[34mtps: 12,345  "
        f"\x1b[36mtflops: 1,030.10  \x1b[35mmfu: 9.70%\x1b[39m\n"
        for k in STEPS
    )
    + "[titan] 2025-02-07 19:55:00,000 - root - INFO - \x1b[33mvalidate step: 50  "
    + "\x1b[32mloss:  3.2500  \x1b[36mmemory: 1.0GiB(1.2%)\n"
)
NANOGPT = (
    "tokens per iteration will be: 65,536\n"
    + "".join(f"iter {k}: loss {8 - k / 10:.4f}, time 45.67ms, mfu 12.30%\n" for k in STEPS)
    + "step 50: train loss 3.1000, val loss 3.2500\n"
)
NANOCHAT = "Total batch size 65,536 => gradient accumulation steps: 1\n" + "".join(
    f"step {k:05d}/00500 ({k / 5:.2f}%) | loss: {8 - k / 10:.6f} | lrm: 1.00 | dt: 345.67ms | tok/sec: 1,516,000 | "
    f"mfu: 45.00 | epoch: 1 pq: 0 rg: 12 | total time: 0.50m | eta: 12.3m\n"
    for k in STEPS
) + "Step 00050 | Validation bpb: 3.250000\nTotal training time: 0.52m\n"  # fmt: skip
LOSSES = [(k, 8 - k / 10) for k in STEPS]
FORMATS = [
    ("megatron", MEGATRON, 64, "validation lm loss value"),
    ("titan", TITAN, None, "validation loss"),
    ("nanogpt", NANOGPT, 64, "val loss"),
    ("nanochat", NANOCHAT, 64, "Validation bpb"),
]


@pytest.mark.parametrize(("name", "text", "batch", "evaluated"), FORMATS, ids=[one[0] for one in FORMATS])
def test_a_log_gives_losses_batch_and_evaluations_and_twice_changes_nothing(
    imports, tmp_path, name, text, batch, evaluated
):
    (tmp_path / f"{name}.log").write_text(text)
    flags = ["--finished", "--no-sweep", *(["--sequence-length", "1024"] if batch else [])]

    said = imports("log", tmp_path, *flags)
    again = imports("log", tmp_path, *flags)

    run = imports.run()
    assert said.status == 0, said.text
    assert again.num_new == 0
    assert close(imports.losses(run["id"]), LOSSES)
    assert imports.metric(run["id"], evaluated) == [(50, 3.25)]
    assert run["global_batch"] == batch


def test_gradient_norms_rates_and_times_of_a_log_arrive(imports, tmp_path):
    (tmp_path / "slurm.out").write_text(MEGATRON)

    imports("log", tmp_path / "slurm.out", "--finished", "--no-sweep")

    run = imports.run()
    assert imports.metric(run["id"], "grad norm") == [(k, 1 + k / 100) for k in STEPS]
    assert (run["lr"], run["examples"], run["unit"], run["units_per_example"]) == (3e-5, 3200, "tokens", 1024)


def test_a_line_that_was_damaged_is_named_and_one_without_an_end_waits(imports, tmp_path):
    lines = TITAN.splitlines(keepends=True)
    lines[1] = lines[1].replace("6.00000", "6.0q000")
    lines[2] = lines[2].replace("step:", "st@p:")
    lines[-1] = lines[-1].rstrip("\n")
    (tmp_path / "run.log").write_text("".join(lines))

    said = imports("log", tmp_path, "--running", "--no-sweep")

    assert "line 2: loss is no number, got '6.0q000" in said.text
    assert "line 6: has no end" in said.text
    assert "line 3: looks like a line of steps" in said.text
    assert [step for step, _ in imports.losses(imports.run()["id"])] == [10, 40, 50]


@pytest.mark.slow  # transformers alone takes a second to load; what the state holds is read in test_damaged.py
def test_the_state_of_a_real_trainer_is_one_run_by_its_newest_checkpoint(imports, tmp_path):
    from transformers.trainer_callback import TrainerState

    for step in (20, 40):
        entries = []
        for k in range(10, step + 1, 10):
            entries += [{"loss": 5 - k / 10, "grad_norm": 1.5, "learning_rate": 1e-3, "epoch": k / 40, "step": k}]
            entries += [{"eval_loss": 6 - k / 10, "eval_runtime": 0.1, "epoch": k / 40, "step": k}]
        state = TrainerState(global_step=step, max_steps=40, train_batch_size=8, log_history=entries)
        (tmp_path / "out" / f"checkpoint-{step}").mkdir(parents=True)
        state.save_to_json(str(tmp_path / "out" / f"checkpoint-{step}" / "trainer_state.json"))

    said = imports("log", tmp_path / "out", "--batch", "32", "--no-sweep")
    again = imports("log", tmp_path / "out", "--batch", "32", "--no-sweep")

    run = imports.run()
    assert (said.status, again.num_new) == (0, 0)
    assert (run["status"], run["lr"], run["global_batch"]) == ("finished", 1e-3, 32)
    assert close(imports.losses(run["id"]), [(k, 5 - k / 10) for k in (10, 20, 30, 40)])
    assert imports.metric(run["id"], "eval_loss") == [(k, 6 - k / 10) for k in (10, 20, 30, 40)]


def test_a_cut_state_of_a_trainer_is_named(imports, tmp_path):
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": [{"step": 1, "loss": 2.0}]})[:-5])

    said = imports("log", tmp_path)

    assert said.status == 1
    assert "trainer_state.json: is no JSON, cut or damaged" in said.text
