"""Files of every kind whose losses are known by their step, and what can happen to them."""

import json
import math
import random
import struct
from collections.abc import Callable
from pathlib import Path

NUM_STEPS = 30


def truth(step: int) -> float:
    """The loss at a step; its digits say which step it is of."""
    return 5.0 + step / 64


def table(path: Path) -> None:
    """A CSV."""
    rows = [f"{k},{truth(k)},{0.5},{32},{k * 32}" for k in range(NUM_STEPS)]
    path.write_text("\n".join(["step,loss,grad_norm,batch_size,examples", *rows]) + "\n")


def json_lines(path: Path) -> None:
    """JSON lines."""
    path.write_text("".join(json.dumps({"step": k, "loss": truth(k), "lr": 0.1}) + "\n" for k in range(NUM_STEPS)))


def trainer_state(path: Path) -> None:
    """The state of a Trainer."""
    history = [{"step": k, "loss": truth(k), "grad_norm": 0.5} for k in range(NUM_STEPS)]
    path.write_text(json.dumps({"global_step": NUM_STEPS, "max_steps": NUM_STEPS, "log_history": history}))


def log(path: Path) -> None:
    """A log of Megatron-LM."""
    lines = [
        f" iteration {k:8d}/      30 | learning rate: 3.0E-05 | global batch size:    32 | lm loss: {truth(k):.6E} | "
        f"grad norm: 0.500 |\n"
        for k in range(NUM_STEPS)
    ]
    path.write_text("".join(lines))


def mlperf(path: Path) -> None:
    """A result log."""

    def line(key, value, **metadata):
        return ":::MLLOG " + json.dumps({"key": key, "value": value, "time_ms": 1, "metadata": metadata}) + "\n"

    events = [line("eval_loss", truth(k), samples_count=32 * (k + 1)) for k in range(NUM_STEPS)]
    path.write_text("".join([line("global_batch_size", 32), *events]))


def events(path: Path) -> None:
    """An event file, by TensorBoard's own writer."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    with path.open("wb") as file:
        writer = RecordWriter(file)
        for k in range(NUM_STEPS):
            value = Summary(value=[Summary.Value(tag="loss", simple_value=truth(k))])
            writer.write(Event(step=k, wall_time=1e9 + k, summary=value).SerializeToString())
        writer.flush()


WRITERS: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "csv": ("table", "run.csv", table),
    "jsonl": ("table", "run.jsonl", json_lines),
    "state": ("log", "trainer_state.json", trainer_state),
    "log": ("log", "run.log", log),
    "mlperf": ("mlperf", "result.txt", mlperf),
    "events": ("tensorboard", "events.out.tfevents.1", events),
}
"""By format: the importer, a file name, and what writes it."""

BINARY = (".1", ".wandb")
WRONG = ("oops", '"text"', "[1, 2]", "true", "1e400", "1_000", "0x10", "", "½", "None", "-0.5e")


def cut(path: Path, rng: random.Random) -> None:
    """Leave a beginning that ends inside of a record."""
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    if len(lines) > 2 and path.suffix not in BINARY:
        kept = rng.randrange(2, len(lines))
        path.write_bytes(b"".join(lines[:kept]) + lines[kept - 1][: rng.randrange(1, len(lines[kept - 1]) - 1)])
    else:
        path.write_bytes(content[: rng.randrange(len(content) // 3, len(content) - 1)])


def flip(path: Path, rng: random.Random) -> None:
    """Turn a bit over. In a text it is one that makes no other digit of a digit: that nobody could tell."""
    content = bytearray(path.read_bytes())
    at = rng.randrange(len(content) // 10, len(content) - 8)
    content[at] ^= 1 << rng.randrange(8) if path.suffix in BINARY else 0x80
    path.write_bytes(content)


def mistype(path: Path, rng: random.Random) -> None:
    """Put something that is no number in the place of a loss, in one row."""
    k, wrong = rng.randrange(1, NUM_STEPS), rng.choice(WRONG)
    if path.suffix in BINARY:
        return flip(path, rng)
    text, number = path.read_text(), repr(truth(k))
    if path.suffix == ".log":
        number = f"{truth(k):.6E}"
    where = text.index(number)
    path.write_text(text[:where] + (wrong or "?") + text[where + len(number) :])
    return None


DAMAGES = (cut, flip, mistype)


def hostile_name(number: int) -> str:
    """A name of a folder that a terminal, a database or a person would stumble over."""
    names = (
        "new\nline", "esc\x1b[31mape", "\udce4 surrogate", "'; DROP TABLE run; --", "a" * 200, " ", "%s%n{0}",
        "\u202eright to left", "ünïcödé \U0001f600", "-rf", "tab\there", "back\\slash",
    )  # fmt: skip
    return f"{number} {names[number % len(names)]}"


def is_true(step: int, loss: float) -> bool:
    """Whether a stored loss is that of its step, in single precision."""
    single = struct.unpack("f", struct.pack("f", truth(step)))[0]
    return math.isclose(loss, truth(step), rel_tol=1e-6) or loss == single
