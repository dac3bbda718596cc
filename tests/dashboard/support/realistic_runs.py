"""Many runs as a team names them: long names of several families, tags, sweeps, and what goes wrong in training."""

from typing import Any

from fakes_runs import FakeRun

FAMILIES = (
    ("cifar10-resnet18-cosine-b{batch}-lr{lr}-wd0.0005-seed{seed}", "vision", "cifar10", "images", "image"),
    ("dota-mini-b{batch}214-selfplay-lstm1024-lr{lr}-s{seed}", "games", "dota-mini", "observations", "observation"),
    ("llama-350m_fineweb-edu_adamw_b{batch}_lr{lr}_warmup2000_seed{seed}", "language", "fineweb", "tokens", "sequence"),
    ("2026-11-{seed:02d}_14-03-55_vit_b16_in21k_augreg_b{batch}_lr{lr}", "vision", "in21k", "images", "image"),
    ("asr/conformer/large/librispeech-960/b{batch}/lr{lr}/s{seed}", "speech", "librispeech", "utterances", "utterance"),
    ("digits-mlp b{batch} lr={lr} seed={seed} (label noise 20 %, clean targets)", "toys", "digits", "images", "image"),
)
STATES = ("running", "finished", "finished", "failed", "silent", "crashed")
TAGS = ((), ("baseline",), ("production-candidate-2026", "bf16"), ("pr-1432",))
NUM_SWEEPS = 3


def realistic_runs(number: int = 90) -> tuple[FakeRun, ...]:
    """Runs of six families; every seventh is not resolved, every eleventh has diverged."""
    return tuple(_run(place) for place in range(number))


def _run(place: int) -> FakeRun:
    name, project, task, unit, example = FAMILIES[place % len(FAMILIES)]
    batch, lr, seed = 2 ** (4 + place % 11), (3e-4, 1e-3, 3e-3, 0.1)[place % 4], 1 + place // len(FAMILIES)
    return FakeRun(
        place + 1,
        name.format(batch=batch, lr=lr, seed=seed),
        noise_scale=37.6 * 1.7 ** (place % 13),
        batch=batch,
        steps=1200 + 91_377 * (place % 5),
        status=STATES[place % len(STATES)],
        project=project,
        task=task,
        unit=unit,
        example=example,
        tags=TAGS[place % len(TAGS)],
        resolved=place % 7 != 0,
        config={"lr": lr, "seed": seed, "weight_decay": 0.0005},
        diverged_at=1000 if place % 11 == 5 else None,
    )


def folds_of(runs: tuple[FakeRun, ...]) -> dict[str, dict[str, Any]]:
    """By the id of a run, the sweep that it is a trial of: every other run is one of a few sweeps."""
    return {
        run.id: {
            "kind": "sweep",
            "id": f"00000000-0000-4000-9000-{place % NUM_SWEEPS:012d}",
            "name": f"critical batch of {FAMILIES[place % NUM_SWEEPS][2]}, learning rate tuned at each batch size",
            "num_runs": len(runs) // 2 // NUM_SWEEPS,
            "batch_low": 16.0,
            "batch_high": 16_384.0,
            "loss": 0.31,
        }
        for place, run in enumerate(runs[1::2])
    }
