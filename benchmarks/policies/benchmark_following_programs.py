"""What `noisescale.follow` does in ordinary programs whose learning rate is off. Writes results/following_programs.csv.

A small GPT on the source text of Python's library, AdamW, warm-up and cosine, trained by a plain loop, by the Hugging
Face `Trainer` and by Lightning; at the best rate of a grid, at a quarter and at four times of it. Each run is kept as
it is, and followed with the rate alone permitted; what counts is the loss on held-out text at the end of the plan, and
how much of the plan the followed run takes to the loss that the kept one ends at.
"""

import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
import lightning
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

import noisescale
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from benchmarks.step_overhead.small_gpt import Size, SmallGPT
from noisescale.integrations.huggingface import NoiseScaleCallback as TrainerNoise
from noisescale.integrations.lightning import NoiseScaleCallback as LightningNoise
from noisescale_lab.follow.callbacks.huggingface import FollowCallback as TrainerFollow
from noisescale_lab.follow.callbacks.lightning import FollowCallback as LightningFollow
from noisescale_lab.follow.follower import Follower
from noisescale_lab.reproduce.tasks import text as characters

MODEL = Size(width=64, depth=2, heads=4, vocabulary=characters.NUM_CHARACTERS, context=32)
NUM_STEPS, WARM_UP = size(600, 20), 0.06
BATCH, MICRO_BATCH = 16, 8
GRID = tuple(1e-3 * 2.0**power for power in range(-2, 6))
STARTS = (1 / 4, 1.0, 4.0)
SEEDS = (0, 1) if not IS_SMOKE else (0,)
LOOKS_AT_LOSS = 20
MAY = ("rate", "undo")

Evaluated = list[tuple[float, float]]
"""(share of the plan, loss on held-out text)."""


class Text(Dataset[Tensor]):
    """Sequences of the training text in an order of their own."""

    def __init__(self, seed: int) -> None:
        text, _ = characters.load()
        generator = torch.Generator().manual_seed(seed)
        starts = torch.randint(len(text) - MODEL.context - 1, (NUM_STEPS * BATCH,), generator=generator)
        self._rows = text[starts[:, None] + torch.arange(MODEL.context + 1)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> Tensor:
        return self._rows[place]


class Model(nn.Module):
    """The GPT with its loss."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.gpt = SmallGPT(MODEL)

    def forward(self, row: Tensor) -> dict[str, Tensor]:
        """As the Trainer calls a model."""
        return {"loss": cross_entropy(self.gpt(row[:, :-1]).flatten(0, 1), row[:, 1:].flatten())}


@cache
def held_out() -> Tensor:
    """Sequences that nothing is trained on."""
    _, text = characters.load()
    generator = torch.Generator().manual_seed(0)
    starts = torch.randint(len(text) - MODEL.context - 1, (size(512, 8),), generator=generator)
    rows: Tensor = text[starts[:, None] + torch.arange(MODEL.context + 1)]
    return rows


@torch.no_grad()
def evaluate(model: Model) -> float:
    """Loss on held-out text."""
    return float(model(held_out())["loss"])


def factor(step: int) -> float:
    """The rate of a step over its peak."""
    warm_up = max(1, round(WARM_UP * NUM_STEPS))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (NUM_STEPS - warm_up)))


def training(model: Model, rate: float) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    """Optimizer and schedule of all programs."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=0.01)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def is_due(step: int) -> bool:
    """Whether the loss is evaluated after so many steps."""
    return step % max(1, NUM_STEPS // LOOKS_AT_LOSS) == 0 or step == NUM_STEPS


def new_run() -> noisescale.Run:
    """Send no record."""
    return noisescale.init(mode="offline", planned_steps=NUM_STEPS)


def loop(rate: float, seed: int, *, follows: bool) -> tuple[Evaluated, Follower | None]:
    """A program as people write them."""
    model, found = Model(seed), Evaluated()
    optimizer, schedule = training(model, rate)
    run, follower = new_run(), None
    if follows:
        run.watch(model, optimizer)
        follower = noisescale.follow(
            run, optimizer, scheduler=schedule, may=MAY, dry_run=False, progress=lambda _: None
        )
    loader = iter(DataLoader(Text(seed), batch_size=MICRO_BATCH))
    for step in range(1, NUM_STEPS + 1):
        losses = []
        for _ in range(BATCH // MICRO_BATCH):
            losses.append(model(next(loader))["loss"])
            (losses[-1] * MICRO_BATCH / BATCH).backward()
        if follower is not None:
            run.log_gradients(loss=torch.stack(losses).mean().detach())
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if follower is not None:
            follower.step()
        if is_due(step):
            found.append((step / NUM_STEPS, evaluate(model)))
    run.unwatch()
    return found, follower


class TrainerEvaluation(TrainerCallback):
    """Evaluates the model of a Trainer now and then."""

    def __init__(self) -> None:
        self.found = Evaluated()

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any, **_: object) -> None:
        """After a step."""
        if is_due(state.global_step):
            self.found.append((state.global_step / NUM_STEPS, evaluate(model)))


def trainer(rate: float, seed: int, *, follows: bool) -> tuple[Evaluated, Follower | None]:
    """The Hugging Face `Trainer`."""
    model, evaluation = Model(seed), TrainerEvaluation()
    noise = TrainerNoise(run=new_run())
    follow = TrainerFollow(noise, may=MAY, dry_run=False, largest=BATCH, progress=lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, use_cpu=True, report_to=[], disable_tqdm=True, dataloader_pin_memory=False,
            per_device_train_batch_size=MICRO_BATCH, gradient_accumulation_steps=BATCH // MICRO_BATCH,
            max_steps=NUM_STEPS, remove_unused_columns=False, save_strategy="no", logging_strategy="no",
            max_grad_norm=0,
        )  # fmt: skip
        Trainer(
            model=model,
            args=arguments,
            train_dataset=_Rows(seed),
            optimizers=training(model, rate),
            callbacks=[noise, follow, evaluation] if follows else [evaluation],
        ).train()
    return evaluation.found, follow.follower


class _Rows(Dataset[dict[str, Tensor]]):
    """Sequences as the Trainer wants them."""

    def __init__(self, seed: int) -> None:
        self._text = Text(seed)

    def __len__(self) -> int:
        return len(self._text)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"row": self._text[place]}


class LightningModel(lightning.LightningModule):
    """The same as a module of Lightning."""

    def __init__(self, rate: float, seed: int) -> None:
        super().__init__()
        self.model, self.rate, self.found = Model(seed), rate, Evaluated()

    def training_step(self, rows: Tensor, batch_index: int) -> Tensor:
        """The loss of a micro-batch."""
        return self.model(rows)["loss"]

    def on_train_batch_end(self, *_: object) -> None:
        """Evaluate now and then."""
        step = self.trainer.global_step
        if is_due(step) and step and (not self.found or self.found[-1][0] < step / NUM_STEPS):
            self.found.append((step / NUM_STEPS, evaluate(self.model)))

    def configure_optimizers(self) -> Any:
        """Optimizer and schedule."""
        optimizer, schedule = training(self.model, self.rate)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def by_lightning(rate: float, seed: int, *, follows: bool) -> tuple[Evaluated, Follower | None]:
    """Lightning's `Trainer`."""
    module = LightningModel(rate, seed)
    noise = LightningNoise(run=new_run())
    follow = LightningFollow(
        noise, micro_batch=MICRO_BATCH, may=MAY, dry_run=False, largest=BATCH, progress=lambda _: None
    )
    with tempfile.TemporaryDirectory() as folder:
        lightning.Trainer(
            accelerator="cpu", default_root_dir=folder, callbacks=[noise, follow] if follows else [],
            max_steps=NUM_STEPS, accumulate_grad_batches=BATCH // MICRO_BATCH, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, logger=False,
        ).fit(module, DataLoader(Text(seed), batch_size=MICRO_BATCH))  # fmt: skip
    return module.found, follow.follower


PROGRAMS: dict[str, Callable[..., tuple[Evaluated, Follower | None]]] = {
    "plain loop": loop,
    "Trainer": trainer,
    "Lightning": by_lightning,
}


def best_of_grid() -> float:
    """The rate with the least mean loss at the end of the plan."""
    ends = {rate: statistics.fmean(loop(rate, seed, follows=False)[0][-1][1] for seed in SEEDS) for rate in GRID}
    print({f"{rate:.2g}": round(loss, 3) for rate, loss in ends.items()}, file=sys.stderr, flush=True)
    return min(ends, key=lambda rate: ends[rate] if math.isfinite(ends[rate]) else math.inf)


def share_to(found: Evaluated, loss: float) -> float | None:
    """Share of the plan at which a loss is met first; None where it is not."""
    return next((share for share, value in found if value <= loss), None)


def figures() -> Iterator[Figure]:
    """Every program from every start."""
    best = best_of_grid() if not IS_SMOKE else GRID[3]
    yield Figure("best rate of the grid", best, "1")
    for name, program in PROGRAMS.items():
        for start in STARTS:
            losses: dict[bool, list[float]] = {False: [], True: []}
            shares, undone, moved = [], 0, []
            for seed in SEEDS:
                kept, _ = program(best * start, seed, follows=False)
                followed, follower = program(best * start, seed, follows=True)
                assert follower is not None
                assert follower.faults.count == 0
                losses[False].append(kept[-1][1])
                losses[True].append(followed[-1][1])
                shares.append(share_to(followed, kept[-1][1]) or math.nan)
                undone += sum(one.is_undo for one in follower.decisions)
                moved.append(follower.learning_rate_factor)
            about = f"{name}, {start:g} × the best rate"
            yield Figure(f"{about}: loss at the end, kept", statistics.fmean(losses[False]), "nats")
            yield Figure(f"{about}: loss at the end, followed", statistics.fmean(losses[True]), "nats")
            yield Figure(f"{about}: share of the plan to the loss of the kept run", 100 * statistics.fmean(shares), "%")
            yield Figure(f"{about}: the rate at the end over its schedule", statistics.geometric_mean(moved), "1")
            yield Figure(f"{about}: raises undone", undone, "of all runs")


if __name__ == "__main__":
    torch.set_num_threads(1)
    # runs that nobody has finished may still write when it goes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        os.environ["NOISESCALE_DIR"] = own
        found = list(figures())
    write("following_programs", found, command="python benchmarks/policies/benchmark_following_programs.py")
