"""A language model of 136 M parameters learns text that ships with Python packages, its noise scale watched.

An ordinary job, offline: its records go where NOISESCALE_DIR says, `noisescale sync` takes them to a server; what was
seen in passing goes to gpu_language_model-<device>.csv. Code of installed packages is cut by a byte-pair tokenizer
that is trained on it, files at random are held out. Without a GPU, or with `--smoke`, a tiny model for some steps.
"""

import argparse
import hashlib
import math
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[2]))
import noisescale
from benchmarks.kernels.items import CUT_OFF, Items
from benchmarks.kernels.results_table import MEASURED, Row, device_name
from benchmarks.smoke import IS_SMOKE
from benchmarks.step_overhead.small_gpt import Size, SmallGPT
from noisescale import Machine, Units

COMMAND = "python benchmarks/gpu/language_model.py"

MODEL = Size(width=768, depth=12, heads=12, vocabulary=32768, context=1024)
TINY = Size(width=32, depth=1, heads=2, vocabulary=512, context=32)

MOST_BYTES = 60_000_000
TOKENIZER_BYTES = 12_000_000
HELD_OUT_IN = 32
"""One file in so many."""

WARM_UP_SHARE, LAST_RATE = 0.05, 0.1
LOOK_EVERY = 10


def texts(most_bytes: int) -> Iterator[tuple[str, bool]]:
    """Each file of code once, in an order that its contents decide, and whether it is held out.

    Args:
        most_bytes: Of all.
    """
    folders = dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))
    seen: dict[str, Path] = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            if 500 < path.stat().st_size < 200_000:
                seen.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path)
    total = 0
    for digest in sorted(seen):
        text = seen[digest].read_text(errors="ignore")
        total += len(text)
        if total > most_bytes:
            return
        yield text, int(digest[-8:], 16) % HELD_OUT_IN == 0


def tokens(size: Size, most_bytes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Token codes to learn from and held out, on the device; bytes where there is no tokenizer."""
    found = list(texts(most_bytes))
    try:
        from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415  # not where only bytes are wanted
    except ImportError:
        parts = [
            torch.frombuffer(bytearray("".join(t for t, held in found if held == h).encode()), dtype=torch.uint8)
            for h in (False, True)
        ]
        return parts[0].long().to(device), parts[1].long().to(device)
    tokenizer = ByteLevelBPETokenizer()
    share = max(1, sum(len(text) for text, _ in found) // min(most_bytes, TOKENIZER_BYTES))
    tokenizer.train_from_iterator((text for text, held in found[::share] if not held), vocab_size=size.vocabulary)
    parts = []
    for wanted in (False, True):
        coded = tokenizer.encode_batch([text for text, held in found if held == wanted])
        parts.append(torch.tensor([code for one in coded for code in one.ids], dtype=torch.int32))
    return parts[0].to(device), parts[1].to(device)


def batches(codes: Tensor, sequences: int, context: int, seed: int) -> Iterator[Tensor]:
    """[B, context + 1] token codes from anywhere in the text."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.arange(context + 1, device=codes.device)
    while True:
        starts = torch.randint(len(codes) - context - 1, (sequences,), generator=generator).to(codes.device)
        yield codes[starts[:, None] + places].long()


def loss_of(model: torch.nn.Module, codes: Tensor) -> Tensor:
    """Mean cross-entropy a token, in nats."""
    with torch.autocast(codes.device.type, torch.bfloat16, enabled=codes.is_cuda):
        logits = model(codes[:, :-1])
    return functional.cross_entropy(logits.float().flatten(0, 1), codes[:, 1:].flatten())


def main() -> None:
    """Train for so long, look now and then, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240, help="of all, with its text and tokenizer")
    parser.add_argument("--batch", type=int, default=64, help="sequences a step")
    parser.add_argument("--lr", type=float, default=6e-4, help="highest learning rate of AdamW")
    parser.add_argument("--again", action="store_true", help="also where this very code has trained it to the end")
    parser.add_argument("--tiny", action="store_true", help="a tiny model, which says nothing; writes nothing")
    arguments = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    is_tiny = IS_SMOKE or arguments.tiny or device.type == "cpu"
    kept = Items(
        "gpu_language_model", device, lambda row: ("training",), command=" ".join([COMMAND, *sys.argv[1:]]),
        seconds=arguments.seconds, is_again=arguments.again, is_written=not is_tiny,
    )  # fmt: skip
    if not kept.missing(["training"], lambda name: (name,)):
        return
    size = TINY if is_tiny else MODEL
    micro_batch = 2 if is_tiny else 8
    began = time.monotonic()
    learned, held_out = tokens(size, 2_000_000 if is_tiny else MOST_BYTES, device)
    print(f"{len(learned):,} tokens to learn, {len(held_out):,} held out, {time.monotonic() - began:.0f} s", flush=True)
    torch.manual_seed(0)
    with device:
        model = SmallGPT(size)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=arguments.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=device.type == "cuda"
    )
    stream = batches(learned, micro_batch, size.context, 1)
    checks = [next(batches(held_out, micro_batch, size.context, 2)) for _ in range(1 if is_tiny else 4)]
    per_step = max(2, arguments.batch // micro_batch)

    def step(run: noisescale.Run | None, rate: float) -> Tensor:
        for group in optimizer.param_groups:
            group["lr"] = rate
        total = torch.zeros((), device=device)
        for _ in range(per_step):
            loss = loss_of(model, next(stream)) / per_step
            loss.backward()
            total += loss.detach()
        if run is not None:
            run.log_gradients(loss=total, batch_size=per_step * micro_batch)
        optimizer.step()
        optimizer.zero_grad()
        return total

    for _ in range(3):  # warms the device up; so small a rate changes nothing
        step(None, 1e-9)
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.monotonic()
    for _ in range(3):
        step(None, 1e-9)
    if device.type == "cuda":
        torch.cuda.synchronize()
    planned = 24 if is_tiny else max(LOOK_EVERY, int(kept.seconds_left() / ((time.monotonic() - start) / 3)))
    run = noisescale.init(
        project="language models",
        task="code of Python packages",
        name=f"GPT 136M, {per_step * micro_batch} sequences",
        units=Units("sequence", "tokens", size.context),
        machine=Machine(device=device_name(device)),
        family="language model",
        planned_steps=planned,
        config={
            "lr": arguments.lr,
            "batch": per_step * micro_batch,
            "micro_batch": micro_batch,
            "parameters": sum(p.numel() for p in model.parameters()),
            "vocabulary": size.vocabulary,
            "tokens": len(learned),
        },
        mode="offline",
    )
    run.watch(model, optimizer)
    rows: list[Row] = []
    start = time.monotonic()
    for index in range(planned):
        warm_up = max(1, int(WARM_UP_SHARE * planned))
        done = (index - warm_up) / max(1, planned - warm_up)
        share = (
            (index + 1) / warm_up
            if index < warm_up
            else LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * done)) / 2
        )
        total = step(run, arguments.lr * share)
        if index % LOOK_EVERY == LOOK_EVERY - 1 or index == planned - 1:
            with torch.no_grad():
                checked = sum(float(loss_of(model, codes)) for codes in checks) / len(checks)
            run.log_metrics({"held-out loss": checked})
            found = run.noise_scale().estimate
            rows.append(
                {
                    "step": index + 1,
                    "tokens": (index + 1) * per_step * micro_batch * size.context,
                    "seconds": time.monotonic() - start,
                    "loss": float(total),
                    "held_out_loss": checked,
                    "noise_scale": found.value,
                    "noise_scale_low": found.low,
                    "noise_scale_high": found.high,
                    "state": found.state.value,
                    "status": f"{CUT_OFF} before step {planned}",
                }
            )
            kept.add(rows, is_over=False)
            if index % (10 * LOOK_EVERY) == 10 * LOOK_EVERY - 1:
                print(
                    f"step {index + 1} of {planned}: loss {float(total):.3f}, held out {checked:.3f}; {found}",
                    flush=True,
                )
    seconds = time.monotonic() - start
    print(f"{planned} steps, {planned * per_step * micro_batch * size.context / seconds:,.0f} tokens/s")
    print(run.noise_scale())
    print(run.recommendation())
    print(run.learning_rate())
    run.finish()
    kept.add([row | {"status": MEASURED} for row in rows])


if __name__ == "__main__":
    main()
