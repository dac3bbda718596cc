"""docs/evidence.md: how far the product can be trusted, each table read from the files of results.

`python benchmarks/tables.py` writes it. The words are here, every number is a file's.
"""

import re
from collections.abc import Iterator, Sequence

import evidence_of_rates
import gpu_figures
from evidence_words import number, paragraph, percent, source, value
from measured_code import is_fresh
from results_file import ROOT, read
from speed_figures import ROWS, printed

PAGE = ROOT / "docs" / "evidence.md"

HEAD = """# Evidence

How far can the numbers be trusted? Each table below is read from a file of results, which has the commit, the machine,
the load and the command of every row; `benchmarks/README.md` lists all files. A target is what we asked of ourselves
before measuring. What was not reached stands here as well.
"""

POLICIES = {
    "keep": "keep batch and rate as they are",
    "B = phi": "batch = noise scale",
    "B = sqrt(r phi)": "batch = √(r · noise scale)",
    "doublings (Merrill)": "doublings (Merrill et al. 2025)",
    "B = r (control)": "control: batch = r, which knows nothing of the run",
    "first version without branches": "our first version",
    "first version": "our first version, with branches of the rate",
    "ours without restarts": "**`noisescale.follow`**",
    "ours": "ours, with restarts that a job has to permit",
}
LONG_RUNS = {
    "powerlaw_long": "a noisy quadratic with plain SGD, 1,359 tuned steps",
    "denoiser_momentum": "a denoiser of convolutions with momentum after a warm-up, 1,338",
    "charlm_long_adamw": "a small transformer with AdamW after a warm-up, 1,935",
    "charlm_finetuned_adamw": "the same, fine-tuned to another text, 878",
}
ZOOM = "zoom, from release to redrawn"
WANTED = {"constant": "45 / 135 %, 0.45", "decaying": "50 / 145 %, 0.36"}
ESTIMATORS = {
    "8 micro-batches": "noisescale",
    "k-diffusion, 8 ranks": "k-diffusion",
    "fairscale, 8 ranks": "fairscale",
    "adaptdl, 8 groups": "AdaptDL",
    "KungFu, 8 ranks": "KungFu",
    "gpt-neox, 5 batches": "gpt-neox",
    "mean of ratios, 8 groups": "mean of ratios",
}


def page() -> str:
    """The whole page."""
    rates = evidence_of_rates.verdicts()
    parts = (_regret(), rates, _odds(), _accuracy(), _coverage(), _reproduction(), _faults(), _speed())
    return "\n".join([HEAD, *(line for part in parts for line in part)]) + "\n"


def _regret() -> Iterator[str]:
    rows = [row for row in read("policies") if row["split"] == "held-out" and float(row["price_over_b_crit"]) == 1]
    yield "## Regret: what following the advice costs\n"
    yield paragraph(
        "Runs of seven held-out real tasks start with the batch off by up to 8 × and the learning rate by up to 4 ×, "
        "follow a policy, and pay for all they compute until the target. *Regret* is that cost over the cost of the "
        "best constant batch with a tuned rate, less one; a run that misses its target counts as 700 %. *Relative* "
        "is the cost relative to keeping what one has, with its 95 % interval."
    )
    for rate in ("constant", "decaying"):
        yield f"**At a {rate} rate** (target: {WANTED[rate]}; missed 3 %):\n"
        yield "| policy | regret, median / p90 | of runs that started right | relative | missed |"
        yield "|---|---|---|---|---|"
        for policy, name in POLICIES.items():
            everything, right = (_policy(rows, rate, policy, kind) for kind in ("all", "right"))
            if everything and right:
                yield f"| {name} | {_cells(everything, right)}"
        yield ""
    kept = [found for rate in WANTED if (found := _policy(rows, rate, "keep", "right"))]
    yield paragraph(
        "*Before the first step* (target: 20 / 60 %): a run that starts with the batch and rate that a sweep of six "
        "other seeds found best, at a constant rate, and keeps them, is the first line's “started right”: "
        f"{' at a constant rate, '.join(map(_pair, kept))} at a decaying one, whose p90 is not reached."
    )
    yield source("policies")
    yield from _regret_of_today()


def _regret_of_today() -> Iterator[str]:
    rows = read("policies_ours")
    yield paragraph(
        "**The present policy**, on seeds that it had not met: the seven held-out tasks again, with noise from single "
        "examples and, one seed, from four small batches of a step; and long runs, one seed: ",
        "; ".join(f"{words} ({rates})" for words, rates in _long_runs(rows)),
        ". Lines of an earlier policy say so.",
    )
    yield "| tasks | rate | noise from | policy | regret, median / p90 | of right starts | relative | missed |"
    yield "|---|---|---|---|---|---|---|---|"
    tables = dict.fromkeys((row["split"], row["rate"], row["noise_from"], row["tasks"]) for row in rows)
    present = max(rows, key=lambda row: row["date"])["code"]
    for split, rate, noise, tasks in tables:
        some = [row for row in rows if (row["split"], row["noise_from"], row["tasks"]) == (split, noise, tasks)]
        about = f"{split}, {tasks} alone" if split == "long" and " " not in tasks else split
        for policy, name in POLICIES.items():
            everything, right = (_policy(some, rate, policy, kind) for kind in ("all", "right"))
            if everything and right:
                old = "" if everything["code"] == present else ", **earlier policy**"
                yield f"| {about}{old} | {rate} | {noise} | {name} | {_cells(everything, right)}"
    yield ""
    yield source("policies_ours")
    yield from evidence_of_rates.in_programs()


def _long_runs(rows: Sequence[dict[str, str]]) -> Iterator[tuple[str, str]]:
    """What each long run is, and at which rates it was replayed."""
    for name, words in LONG_RUNS.items():
        rates = {row["rate"] for row in rows if row["split"] == "long" and name in row["tasks"].split()}
        if rates:
            yield words, " and ".join(sorted(rates))


def _cells(everything: dict[str, str], right: dict[str, str]) -> str:
    return (
        f"{_pair(everything)} | {_pair(right)} | {number(everything['relative'], 2)} "
        f"[{number(everything['low'], 2)}, {number(everything['high'], 2)}] "
        f"| {number(100 * float(everything['missed']), 0)} % |"
    )


def _policy(rows: Sequence[dict[str, str]], rate: str, policy: str, kind: str) -> dict[str, str] | None:
    found = [row for row in rows if (row["rate"], row["policy"], row["kind"]) == (rate, policy, kind)]
    return found[0] if found else None


def _pair(row: dict[str, str]) -> str:
    return f"{number(row['median'], 0)} / {number(row['p90'], 0)} %"


def _odds() -> Iterator[str]:
    figures = {row["figure"]: row for row in read("odds")}
    yield "## Odds: do they come true\n"
    yield paragraph(
        "Of held-out tasks at a constant rate, at prices from 1/16 to 16 × the critical batch. A change is *right* "
        "where it was cheaper than keeping; `keep`, where the batch was within 12.5 % of the best. *Decided* at "
        "odds of 80 % or more; *by progress* knows how far the plan has come."
    )
    yield "| of the plan done | decided | of these right | regret of the chosen batch, median / p90 | of keeping |"
    yield "|---|---|---|---|---|"
    for share in ("10%", "25%", "50%"):
        begin = f"held-out tasks, constant rate, {share} of the plan, by progress: "
        ours, keeping = "regret of the batch of least expected cost", "regret of keeping"
        cells = [value(figures, begin + name, 0) for name in ("decided", "of these right")]
        for what in (ours, keeping):
            pair = (value(figures, f"{begin}{what}, {name}", 0) for name in ("median", "90th percentile"))
            cells.append(" / ".join(pair))
        yield f"| {share.replace('%', ' %')} | {cells[0]} % | {cells[1]} % | {cells[2]} % | {cells[3]} % |"
    yield "\n| odds said, half-way | came true |\n|---|---|"
    begin = "held-out tasks, constant rate, 50% of the plan, by progress: odds "
    for figure in figures:
        if figure.startswith(begin) and figure.endswith(", said"):
            true = value(figures, figure.replace(", said", ", came true"), 0)
            yield f"| {value(figures, figure, 0)} % | {true} % |"
    yield ""
    yield source("odds")


def _accuracy() -> Iterator[str]:
    rows = [row for row in read("truth") if row["rms_log_error"]]
    targets = list(dict.fromkeys((row["target"], row["batch_size"], row["steps"]) for row in rows))
    yield "## Accuracy: against exact truth\n"
    yield paragraph(
        "Root mean square of log(estimate / exact noise scale), all estimators on the same gradients of eight small "
        "batches; the others are our own writing of their published formulas, each first checked against its "
        "published behaviour. A dash: no number at all."
    )
    yield f"| target | exact | examples × steps | {' | '.join(ESTIMATORS.values())} |"
    yield "|---" * (3 + len(ESTIMATORS)) + "|"
    for target, batch_size, steps in targets:
        mine = [row for row in rows if (row["target"], row["batch_size"], row["steps"]) == (target, batch_size, steps)]
        errors = {row["estimator"]: number(row["rms_log_error"], 3) for row in mine}
        cells = " | ".join(errors.get(name, "–") for name in ESTIMATORS)
        yield f"| {target} | {printed(float(mine[0]['noise_scale']))} | {batch_size} × {steps} | {cells} |"
    yield ""
    yield source("truth")


def _coverage() -> Iterator[str]:
    rows = read("coverage")
    shares, first = (
        sorted(float(row["value"]) for row in rows if re.search(kind, row["figure"]))
        for kind in (r": coverage, ", r": coverage at first resolved")
    )
    looks = [row for row in rows if re.search(r"numbers in [\d,]+ looks", row["figure"])]
    yield "## Coverage: do the intervals hold\n"
    yield paragraph(
        f"{len(shares)} settings of noise scale, number of small batches, spectrum and window, at a stated level of "
        f"95 %: the intervals hold the truth in {percent(shares[0])} to {percent(shares[-1])} of draws, half of the "
        f"settings in {percent(shares[len(shares) // 2])} or more (target: 92.5 to 97.5 %). Looked at after every "
        f"step, at the first moment that it is called resolved, {percent(first[0])} to {percent(first[-1])} hold it. "
        f"Pure noise gave {sum(float(row['value']) for row in looks):,.0f} numbers in {len(looks)} million looks."
    )
    yield source("coverage")


def _reproduction() -> Iterator[str]:
    rows = [row for row in read("reproduce") if (row["tasks"], row["targets"]) == ("all tasks", "all")]
    yield "## Reproduction: does the noise scale predict the critical batch\n"
    yield paragraph(
        "`noisescale reproduce` trains small real tasks at tuned rates and sets the noise scale along the run nearest "
        "B_crit against B_crit from steps to target, over all targets with S_min ≥ 5. *All batch sizes* needs no "
        "B_crit. Targets: r² of 0.85 in full runs (median) and 0.75 in quick ones, an rms factor of 2.2."
    )
    yield "| run | seed | tasks scored | decades | r² | rms factor | within × 3 | all batch sizes: r², rms factor |"
    yield "|---|---|---|---|---|---|---|---|"
    near, everywhere = ([row for row in rows if row["average"] == one] for one in ("near_critical", "all_batches"))
    for row, other in zip(near, everywhere, strict=True):
        cells = [row["variant"], row["seed"], row["scored"], number(row["decades"], 1)]
        cells += [number(row["r_squared_of_fit"], 2), number(row["rms_factor"], 1)]
        cells += [f"{number(100 * float(row['within_factor_3']), 0)} %"]
        cells += [f"{number(other['r_squared_of_fit'], 2)}, {number(other['rms_factor'], 1)}"]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield source("reproduce")


def _faults() -> Iterator[str]:
    torture = {row["figure"]: row for row in read("torture")}
    answers = {row["figure"]: row for row in read("foreign_answers")}
    mutants = read("mutants")
    caught = sum(row["outcome"] == "caught" for row in mutants)
    yield "## Faults: is a record ever lost\n"
    yield "| what was done | result | file |\n|---|---|---|"
    lost, doubled = (value(torture, f"records {what}", 0) for what in ("lost", "doubled"))
    faults = value(torture, "faults", 0)
    yield f"| {faults} faults under load | records lost: {lost}; doubled: {doubled} | `torture.csv` |"
    jobs = value(answers, "simulated: jobs with a successor, an adoption and a sync", 0)
    gone, doubled = (
        value(answers, f"simulated: records {what}", 0) for what in ("neither stored nor declared", "doubled")
    )
    yield (
        f"| {jobs} simulated jobs behind a proxy that gives every status with every kind of body "
        f"| records neither stored nor declared lost: {gone}; doubled: {doubled} | `foreign_answers.csv` |"
    )
    yield (
        f"| {len(mutants)} small bugs drawn at random (target: 95 caught) "
        f"| {caught} caught by the quick tests | `mutants.csv` |\n"
    )


def _speed() -> Iterator[str]:
    yield "## Speed\n"
    yield paragraph("Absolute times are of a shared two-core machine and differ by a factor of two from day to day.")
    yield "| what | measured | target | of commit |\n|---|---|---|---|"
    for row in ROWS:
        rows = read(row.results)
        found = {one["figure"]: float(one["value"]) for one in rows}
        if found.keys() >= set(row.figures.values()):
            numbers = {name: printed(found[figure]) for name, figure in row.figures.items()}
            of = rows[0]["commit"].partition(",")[0] + ("" if is_fresh(row.results, rows) else ", code changed since")
            yield f"| {row.what} | {row.measured.format_map(numbers)} | {row.target} | {of} |"
    yield from _zoom()
    yield from _gpu()


def _zoom() -> Iterator[str]:
    """From a file that has pages and calls where others have figures."""
    for row in read("dashboard"):
        if row["call"] == ZOOM:
            p50, p99 = (printed(float(row[name])) for name in ("p50", "p99"))
            yield f"| a zoom into a run of 10 million steps, p50 / p99 | {p50} / {p99} ms | ≤ 300 | {row['commit']} |"


def _gpu() -> Iterator[str]:
    """What an H200 has shown; the host's part is of a machine whose processor is slow beside it."""
    yield "\n## On a GPU\n"
    yield paragraph(
        "One H200, PyTorch 2.11, Triton 3.6, for half an hour: what is not here was not measured (H100, several "
        "GPUs, FSDP2, steps in CUDA graphs, apex and Transformer Engine, which were not installed)."
    )
    yield from gpu_figures.table()
    yield ""
    yield paragraph(*_missed_on_a_gpu())
    yield paragraph(
        "Whole steps of large micro-batches nearly reach what was asked. Eager steps of 2,048 "
        "tokens wait for the host there, so that each microsecond of ours in Python counts; that host's processor "
        "takes two to three times as long as the one on which the other tables were measured, and drifts by a fifth "
        "from one second to the next. Rows of d420b4bc and 24fad096 are from before gradients were held in one call "
        "and summed once a micro-batch: the first step took 1.31 × then, and with looks at the rate 1.43 ×. "
        "`overhead=` bounds what measuring takes, but for some 50 µs of each step; it has not been timed on a GPU. A "
        "language model of 136 M parameters was trained for a minute with its noise scale on: "
        "`gpu_language_model-nvidia-h200.csv`, and its records are a fixture of the tests."
    )


def _missed_on_a_gpu() -> Iterator[str]:
    """What was asked of kernels and not reached, in sentences."""
    above = {s: r for s, r in gpu_figures.per_example_ratios().items() if r > gpu_figures.MOST_OF_A_PRODUCT}
    shapes = ", ".join(f"{shape} ({ratio:.3f} ×)" for shape, ratio in above.items())
    yield "**Not reached by the kernels.** "
    yield f"Norms of examples take more than {gpu_figures.MOST_OF_A_PRODUCT} × for {shapes}. " if above else ""
    in_16_bit, in_32_bit = (gpu_figures.sums_of(dtype, "accumulate") for dtype in ("bf16", "fp32"))
    yield (
        "Adding up and summing squares in one pass takes the device less time than plain adding, and the caller more: "
        f"{float(in_16_bit['wall_ratio']):.2f} × by wall time for gradients of GPT-2 small in bf16 and "
        f"{float(in_32_bit['wall_ratio']):.2f} × in fp32, as a call takes the host "
        f"{float(in_32_bit['host_us']) / 1e3:.1f} ms. "
    )
    yield (
        "For Σ g² of 2,000 tensors the host takes 0.9 to 1.4 ms, where 0.1 was asked: a profile of single calls, of "
        "which there is no file ([kernels](kernels.md))."
    )
