"""The database of Shallue et al. 2018 (arXiv:1811.03600), and any in its layout.

    dataset/model/optimizer/batch_size/study.json
    dataset/model/optimizer/batch_size/trial_id/metadata.json
    dataset/model/optimizer/batch_size/trial_id/measurements.csv

Folders may lie deeper, as `mnist_subsets/…` does. Measurements at step k were made after k steps; here they stand at
step k - 1, as noisescale counts from 0, and those before the first step are left out.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from noisescale_core.errors import ConfigError
from noisescale_importers.readers.files import SourceFile
from noisescale_importers.readers.table import Table, flat
from noisescale_importers.roles import number_of, parsed_json
from noisescale_importers.source import Damage, Row, SourceRun, TrialStatus, shown

STUDY, TRIAL, MEASUREMENTS = "study.json", "metadata.json", "measurements.csv"
STATUSES: Mapping[str, TrialStatus] = {"COMPLETE": "complete", "INCOMPLETE": "incomplete", "INFEASIBLE": "infeasible"}
METRICS = ("val/classification_error", "val/cross_entropy_error", "val/average_precision", "val/cross_entropy_loss")
LOSSES = ("train/cross_entropy_error", "train/cross_entropy_loss", "train/classification_error")
STUDY_FACTS = ("batch_size", "dataset", "model", "optimizer", "early_stopping", "train_steps")
GOALS: Mapping[str, tuple[str, float]] = {
    "cifar_10/resnet_8": ("val/classification_error", 0.3),
    "common_crawl/transformer_base": ("val/cross_entropy_error", 3.9),
    "fashion_mnist/simple_cnn_base": ("val/classification_error", 0.1),
    "imagenet/resnet_50": ("val/classification_error", 0.25),
    "imagenet/vgg_11": ("val/classification_error", 0.35),
    "lm1b/lstm": ("val/cross_entropy_error", 3.9),
    "lm1b/transformer_base": ("val/cross_entropy_error", 3.9),
    "mnist/simple_cnn_base": ("val/classification_error", 0.01),
    "open_images_v4/resnet_50": ("val/average_precision", 0.31),
}
"""Column and threshold of the paper's figure 1, by data set and model."""


class Importer:
    """The plug-in."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The trials of a database, by workload and batch size.

        Raises:
            ConfigError: For a folder that is not there.
        """
        for source in sources:
            root = Path(os.path.abspath(source))
            if not root.is_dir():
                raise ConfigError(f"no folder {shown(source)}: give the database's, unpacked")
            for study in _studies(root):
                yield from _trials_of(root, study)


importer = Importer()


def _studies(root: Path) -> list[Path]:
    found = [Path(folder) for folder, _, names in os.walk(root) if STUDY in names]
    return sorted(found, key=lambda folder: (str(folder.parent), number_of(folder.name) or 0.0, folder.name))


def _trials_of(root: Path, folder: Path) -> Iterator[SourceRun | Damage]:
    study = _json(folder / STUDY)
    if isinstance(study, Damage):
        yield study
        return
    batch = number_of(study.get("batch_size")) or number_of(folder.name)
    if batch is None or not batch > 0:
        yield Damage(str(folder / STUDY), f"has no batch size, got {shown(repr(study.get('batch_size')), 60)}")
        return
    facts = {name: study[name] for name in STUDY_FACTS if name in study} | {"batch_size": batch}
    workload = folder.parent.relative_to(root).as_posix()
    try:
        trials = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        yield Damage(str(folder), f"cannot be read: {error.strerror}")
        return
    for trial in sorted(trials, key=lambda path: (number_of(path.name) or 0.0, path.name)):
        yield _trial(root, trial, workload if workload != "." else _named(study), facts)


def _named(study: Mapping[str, object]) -> str:
    return "/".join(str(study.get(name, "unknown")) for name in ("dataset", "model", "optimizer"))


def _trial(root: Path, folder: Path, workload: str, facts: Mapping[str, object]) -> SourceRun | Damage:
    found = _json(folder / TRIAL)
    if isinstance(found, Damage):
        return found
    parameters = found.get("parameters")
    status = STATUSES.get(str(found.get("status")))
    if not isinstance(parameters, dict) or status is None:
        return Damage(str(folder / TRIAL), "has no parameters, or no status of COMPLETE, INCOMPLETE and INFEASIBLE")
    file = folder / MEASUREMENTS
    if not file.is_file():
        return Damage(str(file), "is not there")
    table = Table(SourceFile(file, str(root), file.relative_to(root).as_posix()))
    metric, target = _goal(workload, table.columns)
    return SourceRun(
        identity=table.file.name,
        root=str(root),
        place=str(file),
        rows=lambda: _rows(table),
        name=f"{workload} {facts['batch_size']:g} {folder.name}",
        config=flat({**parameters, **facts, "trial": folder.name, "status": found["status"]}),
        group=workload,
        state="failed" if status == "infeasible" else "finished",
        trial_status=status,
        targets=() if target is None else (target,),
        roles=_roles(metric, table.columns),
    )


def _goal(workload: str, columns: Sequence[str]) -> tuple[str | None, float | None]:
    """The metric and the target: the paper's, where the workload is one of its figure 1."""
    of_model = "/".join(workload.split("/")[:2])
    if of_model in GOALS and GOALS[of_model][0] in columns:
        return GOALS[of_model]
    return next((name for name in METRICS if name in columns), None), None


def _roles(metric: str | None, columns: Sequence[str]) -> dict[str, str]:
    loss = next((name for name in LOSSES if name in columns), None)
    wanted = {"step": "step", "metric": metric, "loss": loss}
    return {role: name for role, name in wanted.items() if name is not None}


def _rows(table: Table) -> Iterator[Row | Damage]:
    for record in table.records():
        row = record if isinstance(record, Damage) else table.row(record)
        if isinstance(row, Damage):
            yield row
            continue
        step = row.values.get("step")
        if step is None or not 0 <= step < 2**53 or step != int(step):
            yield Damage(row.place, f"the step is no whole number from 0 on, got {step}", is_a_row=True)
        elif step > 0:
            values = {name: value for name, value in row.values.items() if name != "step"}
            yield row._replace(step=int(step) - 1, values=values)


def _json(path: Path) -> dict[str, object] | Damage:
    try:
        found = parsed_json(path.read_bytes())
    except OSError as error:
        return Damage(str(path), f"cannot be read: {error.strerror}")
    except (ValueError, RecursionError):
        return Damage(str(path), "is no JSON, cut or damaged")
    return found if isinstance(found, dict) else Damage(str(path), "is no JSON object")
