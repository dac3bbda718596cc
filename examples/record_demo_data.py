"""Train what `noisescale demo --data` shows, and record what the trainings send: `make demo-data`, about ten minutes.

A server that is thrown away stands behind a recorder. The trainings are real: the demo's four runs, a sweep whose
trials are runs, a branch, a run that follows its noise scale, a set of CSV files that is imported, and a part of
`noisescale reproduce`. What they posted is written as JSON lines, one request each, and packed with xz.
"""

import argparse
import csv
import importlib.metadata
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import torch

import noisescale
from demo import digits
from demo.recorder import DIGITS, Recorder, Request, joined, recording, without_tasks
from demo.train import PLANS, train
from run_demo import TASKS

HERE = Path(__file__).parent
TARGET = HERE.parent / "server" / "src" / "noisescale_server" / "demo" / "requests.jsonl.xz"
PARTS = ("four_runs", "sweep", "branch", "follow", "imported", "reproduce")
MICRO_BATCHES = 4
SWEPT_BATCHES = [16, 32, 64, 128, 256, 512]
SWEPT_RATES = [0.5, 1.0, 2.0, 4.0]
CHECKPOINTS = {round(1.15**k) for k in range(60)}
TARGET_LOSS = 0.35
IMPORTED_BATCHES = (8, 32, 128)
REPRODUCED = "iris_softmax,digits_softmax,digits_mlp,cancer_logistic"
LEFT_OUT = ("iris_softmax", "cancer_logistic")
"""Of these what was found is kept, and not their two hundred short runs: the demo is loaded within seconds."""


def four_runs(folder: Path) -> None:
    """The four runs of `make demo`."""
    for plan in PLANS:
        train(TASKS[plan.task](), plan, lambda step, loss: None)


def sweep(folder: Path) -> None:
    """Digits at six batch sizes: every trial is a run of its own, measured as it trains."""
    task = digits.make_task()

    def trained(batch_size: int, lr: float, seed: int) -> Iterator[noisescale.Run]:
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        model = task.make_model()
        optimizer = task.make_optimizer(model, lr)
        with noisescale.init(
            project="demo", task="digits sweep", name=f"digits-sweep-b{batch_size}-lr{lr:.3g}-s{seed}", tags=["sweep"],
            family=task.family, units=noisescale.Units(example=task.example, unit=task.unit),
            config={"batch_size": batch_size, "lr": lr, "seed": seed},
        ) as run:  # fmt: skip
            run.watch(model, optimizer)
            for step in range(max(CHECKPOINTS)):
                total = 0.0
                inputs, targets = task.sample(batch_size, generator)
                for part in zip(inputs.chunk(MICRO_BATCHES), targets.chunk(MICRO_BATCHES), strict=True):
                    loss = task.loss(model, part) / MICRO_BATCHES
                    loss.backward()
                    total += loss.item()
                run.log_gradients(loss=total, batch_size=batch_size)
                optimizer.step()
                optimizer.zero_grad()
                if step + 1 in CHECKPOINTS:
                    run.log_metrics(step=step, eval_loss=task.evaluate(model))
                    yield run

    found = noisescale.sweep(
        trained, SWEPT_BATCHES, target=[1.0, TARGET_LOSS], metric="eval_loss", learning_rates=SWEPT_RATES, seeds=2,
        labels=noisescale.Labels("digits: batch size × rate", "demo", "digits sweep", unit="images", optimizer="SGD"),
    )  # fmt: skip
    print(found)


def branch(folder: Path) -> None:
    """From step 150 of a run of digits: are twice and four times the batch as good here?"""
    task = digits.make_task()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = task.make_model()
    optimizer = task.make_optimizer(model, 0.2)

    def step(batch: tuple[torch.Tensor, torch.Tensor], run: noisescale.Run | None = None) -> None:
        total = 0.0
        for part in zip(batch[0].chunk(MICRO_BATCHES), batch[1].chunk(MICRO_BATCHES), strict=True):
            loss = task.loss(model, part) / MICRO_BATCHES
            loss.backward()
            total += loss.item()
        if run is not None:
            run.log_gradients(loss=total, batch_size=len(batch[0]))
        optimizer.step()
        optimizer.zero_grad()

    def train_steps(batch_size: int, lr: float, num_steps: int, seed: int) -> None:
        own = torch.Generator().manual_seed(seed)
        for _ in range(num_steps):
            step(task.sample(batch_size, own))

    held_out = [task.sample(64, torch.Generator().manual_seed(1000 + k)) for k in range(24)]
    with noisescale.init(
        project="demo", task="digits", name="digits-branched", family=task.family, planned_steps=600, tags=["branch"],
        units=noisescale.Units(task.example, task.unit), machine=noisescale.Machine(usd_per_device_hour=2.0),
        config={"batch_size": 32, "lr": 0.2},
    ) as run:  # fmt: skip
        run.watch(model, optimizer)
        for number in range(600):
            if number == 150:
                time.sleep(3)  # the run is on the server before what branches off it
                run.unwatch()
                found = noisescale.branch(
                    train_steps,
                    lambda: [task.loss(model, batch) for batch in held_out],
                    batch_size=32,
                    model=model,
                    optimizer=optimizer,
                    batch_sizes=[64, 128],
                    num_examples=4096,
                    progress=print,
                )
                print(found)
                run.watch(model, optimizer)
            step(task.sample(32, generator), run)


def follow(folder: Path) -> None:
    """The example of following, which acts on what it measures."""
    environment = os.environ | {"FOLLOW": "1", "NUM_STEPS": "400"}
    subprocess.run([sys.executable, str(HERE / "follow_noise_scale.py")], env=environment, check=True)


def imported(folder: Path) -> None:
    """CSV files of plain trainings, three batch sizes by two seeds, as `noisescale import table` takes them."""
    task = digits.make_task()
    for batch_size in IMPORTED_BATCHES:
        for seed in range(2):
            torch.manual_seed(seed)
            generator = torch.Generator().manual_seed(seed)
            model = task.make_model()
            optimizer = task.make_optimizer(model, min(0.5, 0.02 * batch_size))
            with (folder / f"digits-b{batch_size}-s{seed}.csv").open("w", newline="") as file:
                rows = csv.writer(file)
                rows.writerow(["step", "loss", "eval_loss", "batch_size", "lr", "grad_norm", "seed"])
                for step in range(300):
                    loss = task.loss(model, task.sample(batch_size, generator))
                    loss.backward()
                    norm = torch.nn.utils.get_total_norm([one.grad for one in model.parameters()])
                    optimizer.step()
                    optimizer.zero_grad()
                    evaluated = f"{task.evaluate(model):.6g}" if step % 5 == 4 else ""
                    rate = optimizer.param_groups[0]["lr"]
                    rows.writerow([step, f"{loss:.6g}", evaluated, batch_size, rate, f"{norm:.6g}", seed])
    command = [str(Path(sys.executable).with_name("noisescale")), "import", "table", str(folder), "--project", "demo"]
    roles = ["--metric", "eval_loss", "--gradient-norm", "grad_norm"]
    subprocess.run([*command, "--task", "digits from CSV", "--as", "demo", "--finished", *roles], check=True)


def reproduce(folder: Path) -> None:
    """Four tasks of the quick campaign, with their runs, sweeps and findings."""
    command = [str(Path(sys.executable).with_name("noisescale")), "reproduce", "--quick", "--tasks", REPRODUCED]
    subprocess.run([*command, "--folder", str(folder / "found")], check=True)


def record(parts: tuple[str, ...]) -> list[Request]:
    """Train, and what that posted, in its order."""
    with recording() as (recorder, key), tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "NOISESCALE_URL": f"http://127.0.0.1:{recorder.server_port}",
            "NOISESCALE_API_KEY": key,
            "NOISESCALE_DIR": f"{folder}/state",
            "NOISESCALE_GROUP_SECONDS": "2",
            "OMP_NUM_THREADS": "1",
        }
        for part in parts:
            began = time.monotonic()
            subprocess.run([sys.executable, __file__, "--part", part], env=environment, check=True)
            print(f"{part}: {time.monotonic() - began:.0f} s, {len(recorder.kept)} requests", flush=True)
        if "four_runs" in parts:
            settings(recorder.behind, key, recorder)
        return recorder.kept


def settings(server: httpx.Client, key: str, recorder: Recorder) -> None:
    """What a team has set for the project: a price, and a rule that watches its runs."""
    for method, path, body in (
        ("PUT", "/api/v1/projects/demo/defaults", {"device_hour_price": 2.0, "preference": 0.5}),
        ("POST", "/api/v1/projects/demo/alerts/rules", {"name": "batch far off", "kind": "batch_off", "factor": 4.0}),
    ):
        server.request(method, path, json=body, headers={"Authorization": f"Bearer {key}"}).raise_for_status()
        recorder.keep(method, path, json.dumps(body).encode())


def write(requests: list[Request], target: Path) -> None:
    """The provenance on the first line, then one request a line."""
    # of the branch that others have: what this clone alone has, nobody can look up
    command = ["git", "merge-base", "HEAD", "origin/main"]
    commit = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False).stdout
    runs = {one["body"]["run_id"] for one in requests if one["path"].endswith("/batches")}
    provenance = {
        "format": 1,
        "made_by": "python examples/record_demo_data.py",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.strip(),
        "noisescale": noisescale.__version__,
        "torch": importlib.metadata.version("torch"),
        "runs": len(runs),
        "data": "digits of scikit-learn, characters of Python's standard library, blobs drawn at random",
        "numbers": f"floats to {DIGITS} digits, times to a millisecond; batches of a stream joined; hosts left out",
        "left_out": f"runs and sweeps of the tasks {', '.join(LEFT_OUT)} of noisescale reproduce",
    }
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (provenance, *requests))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{target}: {len(requests)} requests of {len(runs)} runs, {target.stat().st_size:,} bytes")


def main() -> None:
    """Record all, or, as a process of its own, train one part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", choices=PARTS, help="train this alone, for the server of the environment")
    parser.add_argument("--only", help="record these parts, with commas between them")
    parser.add_argument("--target", type=Path, default=TARGET, help="file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.part is not None:
        with tempfile.TemporaryDirectory() as folder:
            globals()[arguments.part](Path(folder))
        return
    parts = tuple(arguments.only.split(",")) if arguments.only else PARTS
    write(joined(without_tasks(record(parts), LEFT_OUT)), arguments.target)


if __name__ == "__main__":
    main()
