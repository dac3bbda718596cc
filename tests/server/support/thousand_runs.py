"""A thousand runs as six teams have them, sent to a real server the way jobs do, with what goes wrong in training.

Long names; runs that diverged, fell silent, crashed, failed, were resumed by a second process, have only begun, were
imported, have one device, say no price; ragged lengths; sweeps of two hundred trials.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import httpx
import numpy as np
from sqlalchemy import update

from app_in_process import client_of, running_app
from factories import make_run, make_stream
from noisescale_server.storage.platform.tables import Run
from stored_runs import judge_all

NAMESPACE = UUID("5f0f3c7e-7a6c-4a51-9df5-0b1c3f0f9d11")
SILENT_AFTER, CRASHED_AFTER = 3 * 3600.0, 24 * 3600.0
"""Settings of the server that shows them: `running` runs stay so for as long as a test takes."""
SETTINGS = {"silent_after_seconds": SILENT_AFTER, "crashed_after_seconds": CRASHED_AFTER}
LONGEST = 90
"""Rows of the longest run; each row holds ten updates or more."""


@dataclass(frozen=True, slots=True)
class Family:
    """A project of one task: names of its runs, what an example is, and how its loss falls."""

    name: str
    project: str
    task: str
    unit: str
    example: str
    noise_scale: float
    critical_batch: float
    loss: float
    units_per_example: float = 1.0
    optimizer: str = "SGD"
    usd: float | None = None
    devices: int = 8


FAMILIES = (
    Family("cifar10-resnet18-cosine-b{batch}-lr{lr}-wd0.0005-seed{seed}", "vision", "cifar10", "images", "image",
           900, 1_100, 0.4, devices=1),
    Family("dota-mini-b{batch}214-selfplay-lstm1024-lr{lr}-s{seed}", "games", "dota-mini", "observations",
           "observation", 60_000, 90_000, 0.9, optimizer="Adam", usd=1.8, devices=64),
    Family("llama-350m_fineweb-edu_adamw_b{batch}_lr{lr}_warmup2000_seed{seed}", "language-models", "fineweb-edu",
           "tokens", "sequence", 700, 1_500, 2.9, units_per_example=2048.0, optimizer="AdamW", usd=2.4, devices=32),
    Family("2026-11-{seed:02d}_14-03-55_vit_b16_in21k_augreg_b{batch}_lr{lr}", "vision", "in21k", "images", "image",
           4_800, 6_000, 2.2, optimizer="AdamW", usd=2.1, devices=16),
    Family("asr/conformer/large/librispeech-960/b{batch}/lr{lr}/s{seed}", "speech-recognition", "librispeech-960",
           "utterances", "utterance", 350, 500, 0.7, optimizer="Adam"),
    Family("digits-mlp b{batch} lr={lr} seed={seed} (label noise 20 %, clean targets)", "toys", "digits", "images",
           "image", 90, 120, 0.3, devices=1),
)  # fmt: skip
TAGS = ((), ("baseline",), ("production-candidate-2026", "bf16"), ("pr-1432",), ())
RATES = (3e-4, 1e-3, 3e-3, 0.1)
NUM_OF_A_SWEEP, SWEEPS_OF_A_FAMILY = 15, 2
STATES = ("finished", "finished", "failed", "running", "finished", "silent", "finished", "crashed")


@dataclass(frozen=True, slots=True)
class Made:
    """One run of the thousand: what it is of, and what is peculiar about it.

    Attributes:
        kind: nan, early, resumed, imported, unresolved, one_backward or plain.
        trial_of: The sweep that it is a trial of; None: a run of its own.
    """

    id: UUID
    place: int
    family: Family
    batch: int
    lr: float
    seed: int
    kind: str
    state: str
    trial_of: int | None

    @property
    def name(self) -> str:
        return self.family.name.format(batch=self.batch, lr=f"{self.lr:g}", seed=self.seed)


KINDS = {3: "nan", 5: "unresolved", 7: "early", 11: "resumed", 13: "imported", 17: "one_backward"}


def runs_of(number: int = 1_000) -> Iterator[Made]:
    """The runs, always the same ones."""
    trials = len(FAMILIES) * SWEEPS_OF_A_FAMILY * NUM_OF_A_SWEEP if number >= 1_000 else 0
    for place in range(number):
        family = FAMILIES[place % len(FAMILIES)]
        octave = round(float(np.log2(family.critical_batch)))
        of_family = place // len(FAMILIES)
        if place < trials:
            sweep, trial = divmod(of_family, NUM_OF_A_SWEEP)
            batch, seed = 2 ** (octave - 4 + 2 * (trial % 5)), 1 + trial // 5
            kind, state, lr = "plain", "finished", RATES[1 + sweep]
            trial_of: int | None = sweep * len(FAMILIES) + place % len(FAMILIES)
        else:
            batch, lr = 2 ** max(octave - 5 + of_family % 9, 2), RATES[of_family % len(RATES)]
            kind, seed, trial_of = KINDS.get(of_family % 19, "plain"), 1 + of_family % 28, None
            state = {"imported": "finished", "early": "running"}.get(kind, STATES[of_family % len(STATES)])
        yield Made(uuid5(NAMESPACE, f"run {place}"), place, family, batch, lr, seed, kind, state, trial_of)


def fill(database_url: str, number: int = 1_000) -> list[Made]:
    """The runs, stored, judged and as old as they say; for a server with these `SETTINGS`."""
    return asyncio.run(_fill(database_url, list(runs_of(number))))


async def _fill(database_url: str, made: Sequence[Made]) -> list[Made]:
    async with running_app(database_url, pool_size=8, gather_sweeps=False, **SETTINGS) as app, client_of(app) as client:
        waiting = iter(made)

        async def send() -> None:
            for one in waiting:
                for stream, body in enumerate(bodies_of(one)):
                    path = f"/api/v1/streams/{uuid5(one.id, str(stream))}/batches"
                    answer = await client.post(path, json=body)
                    assert answer.status_code == 200, answer.text

        await asyncio.gather(*(send() for _ in range(4)))
        for place in sorted({one.trial_of for one in made if one.trial_of is not None}):
            await _add_sweep(client, place, [one for one in made if one.trial_of == place])
        await _add_prices(client)
        await judge_all(app)
        async with app.state.sessions.begin() as session:
            for one in made:
                heard = datetime.now(UTC) - _quiet(one)
                began = heard - timedelta(hours=1 + 5 * (one.place % 9))
                columns = {"updated_at": heard, "created_at": began}
                await session.execute(update(Run).where(Run.id == one.id).values(columns))
    return list(made)


def _quiet(one: Made) -> timedelta:
    """For how long nothing has come of a run."""
    seconds = {"running": 1.0, "silent": 1.5 * SILENT_AFTER, "crashed": 2 * CRASHED_AFTER}
    return timedelta(seconds=seconds.get(one.state, 3_600.0 * (6 + 1.7 * one.place)))


async def _add_sweep(client: httpx.AsyncClient, place: int, trials: Sequence[Made]) -> None:
    family = trials[0].family
    body = {
        "id": str(uuid5(NAMESPACE, f"sweep {place}")),
        "project": family.project,
        "task": family.task,
        "name": f"critical batch of {family.task}, learning rate tuned at each batch size, no {1 + place}",
        "targets": [1.25 * family.loss, 1.4 * family.loss],
        "optimizer": family.optimizer,
        "unit": family.unit,
    }
    (await client.post("/api/v1/sweeps", json=body)).raise_for_status()
    runs = [{"run_id": str(t.id), "batch_size": t.batch, "lr": t.lr, "seed": t.seed} for t in trials]
    (await client.post(f"/api/v1/sweeps/{body['id']}/runs", json={"runs": runs})).raise_for_status()


async def _add_prices(client: httpx.AsyncClient) -> None:
    """One project has a price for all of its runs; the others have none, or one a run."""
    path = "/api/v1/projects/speech-recognition/defaults"
    (await client.put(path, json={"device_hour_price": 1.8, "currency": "EUR", "usd_per_unit": 1.1})).raise_for_status()


def bodies_of(one: Made) -> Iterator[dict[str, Any]]:
    """What the run's processes send: one batch each, two of a resumed run."""
    random_numbers = np.random.default_rng(one.place)
    num_rows, every = _length(one), 10 if one.place % 3 else 25
    began = time.time() - 86_400.0 - 40_000.0 * (one.place % 50)
    parts = [range(num_rows)]
    if one.kind == "resumed":
        parts = [range(2 * num_rows // 3), range(num_rows // 2, num_rows)]  # the second began at an older checkpoint
    for incarnation, rows in enumerate(parts):
        measured = rows_of(one, rows, every, began + incarnation * 7_200, random_numbers)
        last = len(rows) + 1
        family = one.family
        batch: dict[str, Any] = {
            "proto": 1,
            "run_id": str(one.id),
            "first_seq": 1,
            "crc32": 1,
            "run": {"seq": 1, "run": _run(one, num_rows * every), "stream": make_stream(
                started_at=began + incarnation * 7_200, unit=family.unit, units_per_example=family.units_per_example,
                optimizer=family.optimizer, host=f"node-{one.place % 40:03d}.cluster.example.org",
                estimator="none" if one.kind == "one_backward" else "micro_batches",
            )},
            "measurements": measured,
        }  # fmt: skip
        is_last = incarnation == len(parts) - 1
        if one.state in ("finished", "failed") and is_last:
            last += 1
            batch["finish"] = {"seq": last, "status": one.state, "wall_time": measured["wall_time"][-1] + 1}
        yield batch | {"last_seq": last}


def _length(one: Made) -> int:
    """Rows of the run: ragged, a few of it where it has only begun."""
    if one.kind == "early":
        return 1 + one.place % 2
    return LONGEST if one.trial_of is not None else random.Random(one.place).randint(LONGEST // 4, LONGEST)


def _run(one: Made, num_steps: int) -> dict[str, Any]:
    family = one.family
    config = {"lr": one.lr, "seed": one.seed, "weight_decay": 0.0005, "batch_size": one.batch,
              "schedule": ("cosine", "linear", "constant")[one.place % 3]}  # fmt: skip
    if one.kind == "imported":
        config |= {"imported_from": {"importer": "wandb", "source": f"wandb/offline-run-{one.place}/run.wandb"}}
    said = make_run(
        project=family.project, task=family.task, name=one.name, unit=family.unit, example=family.example,
        units_per_example=family.units_per_example, num_devices=family.devices, tags=list(TAGS[one.place % len(TAGS)]),
        config=config, planned_steps=2 * num_steps,
    )  # fmt: skip
    return said if family.usd is None else said | {"usd_per_device_hour": family.usd, "device": "H100 SXM"}


def rows_of(
    one: Made, rows: range, every: int, began: float, random_numbers: np.random.Generator
) -> dict[str, list[Any]]:
    """The columns of these rows: a noise scale that grows, a loss that falls faster at larger batches."""
    n, family = len(rows), one.family
    steps = np.array([every * (row + 1) - 1 for row in rows])
    done = (steps + 1) / (every * LONGEST)
    noise = family.noise_scale * (0.3 + done) ** 0.6
    spread = 0.3 + 0.25 * min((family.noise_scale / one.batch), 8.0)
    spread *= 12.0 if one.kind == "unresolved" else 1.0
    y = 0.5 * done[:, None] ** -0.3 * random_numbers.normal(1.0, spread, (n, every))
    x = noise[:, None] * 0.5 * done[:, None] ** -0.3 * random_numbers.normal(1.0, 0.15, (n, every))
    target = 250.0 * (1 + family.critical_batch / one.batch) / (1 + family.critical_batch / (family.critical_batch / 4))
    loss = family.loss * (0.7 + 0.6 * ((steps + 1) / target) ** -0.5) * random_numbers.normal(1.0, 0.005, n)
    columns: dict[str, list[Any]] = {
        "seq": list(range(2, n + 2)),
        "step": steps.tolist(),
        "num_updates": [every] * n,
        "wall_time": (began + _seconds(one) * steps).tolist(),
        "examples": [int(one.batch * (step + 1)) for step in steps],
        "micro_batch_size": [one.batch / 4] * n,
        "num_micro_batches": [4] * n,
        "global_batch": [float(one.batch)] * n,
        "sum_trace_cov": x.sum(1).tolist(),
        "sum_grad_sq_norm": y.sum(1).tolist(),
        "sum_trace_cov_sq": (x * x).sum(1).tolist(),
        "sum_grad_sq_norm_sq": (y * y).sum(1).tolist(),
        "sum_trace_cov_grad_sq_norm": (x * y).sum(1).tolist(),
        "sum_loss": (loss * every).tolist(),
        "num_loss": [every] * n,
        "lr": (one.lr * np.clip(1.15 - done, 0.1, 1.0)).tolist(),
        "flags": [0] * n,
    }
    if one.kind == "nan":
        _break(columns, from_row=max(n - n // 4, 1), flags=3)
    if one.kind == "one_backward":
        _forget(columns, range(n))
    return columns


def _seconds(one: Made) -> float:
    """Wall time of a step."""
    return 0.2 + one.batch / one.family.critical_batch


SUMS: Sequence[str] = (
    "sum_trace_cov", "sum_grad_sq_norm", "sum_trace_cov_sq", "sum_grad_sq_norm_sq", "sum_trace_cov_grad_sq_norm",
)  # fmt: skip


def _forget(columns: dict[str, list[Any]], rows: Sequence[int]) -> None:
    for name in SUMS:
        for row in rows:
            columns[name][row] = None


def _break(columns: dict[str, list[Any]], *, from_row: int, flags: int) -> None:
    rows = range(from_row, len(columns["seq"]))
    _forget(columns, rows)
    for row in rows:
        columns["sum_loss"][row], columns["num_loss"][row], columns["flags"][row] = None, 0, flags


def one_of(made: Sequence[Made], wanted: Callable[[Made], bool]) -> Made:
    """The first such run."""
    return next(one for one in made if wanted(one))
