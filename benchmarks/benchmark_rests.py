"""The rest of an epoch: what steps of 5 to 200 images among steps of 256 do to the noise scale of digits.

The weights stay as they are, so the truth is exact. Each draw is a run of ten epochs, each of seven steps of 256 images
and one of the rest, with images drawn with replacement and a gradient for each. Beside it, what the same draw gives
without its rests, and with all steps in one mean, as it was before.
"""

import logging
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from results_file import Figure, write
from smoke import size
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from noisescale.guard import Notices
from noisescale.rows.updates import LoggedStep, Update, update_from_two_batches
from noisescale.track.step_log import StepLog
from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.estimators.noise_scale import Terms

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("examples", "tests/support"))
from demo import digits
from digits_truth import exact_terms

RESTS = (5, 24, 120, 128, 200)
DRAWS = size(200, 2)
EPOCHS = 10
STEPS_OF_AN_EPOCH = 7
BATCH = 256


def gradients(model: torch.nn.Module) -> Tensor:
    """The gradient of every image, [N, P], in fp64."""
    images, labels = digits.load()
    weights = {name: weight.detach().double() for name, weight in model.named_parameters()}

    def loss(weights: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(model, weights, (image[None],)), label[None])

    rows = vmap(grad(loss), in_dims=(None, 0, 0))(weights, images.double(), labels)
    return torch.cat([row.flatten(1) for row in rows.values()], dim=1)


def steps_of(gradients_np: Tensor, rest: int, generator: torch.Generator) -> Iterator[Update]:
    """The steps of one run."""
    sq_norms = (gradients_np**2).sum(1)
    sizes = ([BATCH] * STEPS_OF_AN_EPOCH + [rest]) * EPOCHS
    for step, num_images in enumerate(sizes):
        chosen = torch.randint(len(gradients_np), (num_images,), generator=generator)
        yield update_from_two_batches(
            LoggedStep(step, 0.0),
            small_batch_size=1,
            big_batch_size=num_images,
            small_sq_norm=float(sq_norms[chosen].mean()),
            big_sq_norm=float((gradients_np[chosen].mean(0) ** 2).sum()),
            num_small=num_images,
            loss=None,
        )


def figures_of(rest: int, gradients_np: Tensor, truth: Terms) -> Iterator[Figure]:
    """What the draws of one rest have found."""
    generator = torch.Generator().manual_seed(rest)
    taken: list[Terms] = []
    kept, without, equal = [], [], []
    for _ in range(DRAWS):
        log = StepLog(
            lambda record: None, time.time, Notices(), group_seconds=60, log_every=1, on_norms=lambda *_: None
        )
        steps = list(steps_of(gradients_np, rest, generator))
        taken += [update.terms for update in map(log.add, steps) if update.terms is not None]
        kept.append(log.recent)
        without.append(window_of([update for update in steps if update.global_batch == BATCH]))
        equal.append(window_of(steps))
    yield Figure(f"rest {rest}: mean tr Σ to exact", mean(taken, "trace_cov") / truth.trace_cov, "", "0.95 to 1.05")
    square = mean(taken, "grad_sq_norm") / truth.grad_sq_norm
    yield Figure(f"rest {rest}: mean |G|² to exact", square, "", "0.95 to 1.05")
    noise_scale = truth.trace_cov / truth.grad_sq_norm
    yield Figure(f"rest {rest}: coverage", coverage(kept, noise_scale), "", "0.925 to 0.975")
    yield Figure(f"rest {rest}: median width to that without rests", width(kept) / width(without), "", "<= 1.1")
    yield Figure(f"rest {rest}: the same with all steps in one mean", width(equal) / width(without), "")
    yield Figure(f"rest {rest}: resolved", share_resolved(kept), "")
    yield Figure(f"rest {rest}: the same with all steps in one mean", share_resolved(equal), "")


def window_of(updates: Sequence[Update]) -> RecentUpdates:
    """The latest window of these updates, whatever their sizes."""
    found = RecentUpdates()
    for update in updates:
        assert update.terms is not None
        found.add(update.terms)
    return found


def mean(terms: Sequence[Terms], name: str) -> float:
    """Of one term."""
    return statistics.fmean(getattr(one, name) for one in terms)


def coverage(windows: Sequence[RecentUpdates], noise_scale: float) -> float:
    """Share of the intervals that hold the truth; one without an upper end reaches as far as it likes."""
    found = [window.estimate() for window in windows]
    inf = float("inf")
    return statistics.fmean((one.low or 0.0) <= noise_scale <= (inf if one.high is None else one.high) for one in found)


def width(windows: Sequence[RecentUpdates]) -> float:
    """The median of high / low - 1; infinite where most have no upper end."""
    found = [window.estimate() for window in windows]
    return statistics.median(one.high / one.low - 1 if one.high and one.low else float("inf") for one in found)


def share_resolved(windows: Sequence[RecentUpdates]) -> float:
    """How many are resolved."""
    return statistics.fmean(window.estimate().state == "resolved" for window in windows)


def main() -> None:
    """Measure and write the results."""
    logging.getLogger("noisescale").setLevel(logging.ERROR)
    torch.manual_seed(0)
    model = digits.make_model()
    gradients_np = gradients(model)
    truth = Terms(*exact_terms(model))
    write("rests", [figure for rest in RESTS for figure in figures_of(rest, gradients_np, truth)])


if __name__ == "__main__":
    main()
