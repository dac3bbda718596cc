"""What is measured: gradients whose noise scale is known exactly, frozen and moving."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.truth import characters, digits_mlp
from benchmarks.truth.power_law import HEAVY_TAILED, PowerLaw
from benchmarks.truth.step import Target


@dataclass(frozen=True, slots=True)
class Plan:
    """A target and how often it is measured.

    Attributes:
        make: Builds it; training up to a point takes its time.
        replicates: In the full run; so many that the bias is known to 0.3 % where that is cheap; 300 at least.
        is_quick: Part of the quick run too.
    """

    make: Callable[[], Target]
    replicates: int
    is_quick: bool = False


PLANS = (
    Plan(lambda: PowerLaw("power law, B 20", 20, 256, 32), 500, is_quick=True),
    Plan(lambda: PowerLaw("power law, B 200", 200, 256, 32), 700, is_quick=True),
    Plan(lambda: PowerLaw("power law, B 2,000", 2_000, 1024, 64), 1200, is_quick=True),
    Plan(lambda: PowerLaw("power law, B 20,000", 20_000, 8192, 64), 1700),
    Plan(lambda: PowerLaw("power law, B 2,000, 8 × the batch", 2_000, 256, 128, group_counts=(2, 8)), 7800),
    Plan(lambda: PowerLaw("heavy tails, B 20", 20, 256, 32, HEAVY_TAILED), 650, is_quick=True),
    Plan(lambda: PowerLaw("heavy tails, B 200", 200, 256, 32, HEAVY_TAILED), 800),
    Plan(lambda: PowerLaw("heavy tails, B 2,000", 2_000, 1024, 64, HEAVY_TAILED), 1200),
    Plan(lambda: PowerLaw("heavy tails, B 20,000", 20_000, 8192, 64, HEAVY_TAILED), 1600),
    Plan(lambda: digits_mlp.frozen("digits MLP, start", digits_mlp.START), 1000),
    Plan(lambda: digits_mlp.frozen("digits MLP, middle", digits_mlp.MIDDLE, num_steps=64), 1800),
    Plan(lambda: digits_mlp.frozen("digits MLP, late", digits_mlp.LATE), 1400, is_quick=True),
    Plan(lambda: characters.frozen("transformer, start", 0), 2200),
    Plan(lambda: characters.frozen("transformer, 100 steps", 100), 1400, is_quick=True),
    Plan(lambda: characters.frozen("transformer, 400 steps", 400), 800),
    Plan(lambda: PowerLaw("moving power law, B 200", 200, 256, 32, learning_rate=1.0), 700, is_quick=True),
    Plan(lambda: PowerLaw("moving power law, B 2,000", 2_000, 1024, 64, learning_rate=0.5), 1400),
    Plan(
        lambda: PowerLaw(
            "moving power law, B 2,000, 8 × the batch", 2_000, 256, 128, learning_rate=0.2, group_counts=(2, 8)
        ),
        8500,
    ),
    Plan(lambda: digits_mlp.DigitsTraining("moving digits MLP, middle", digits_mlp.MIDDLE, 0.1), 300),
    Plan(lambda: digits_mlp.DigitsTraining("moving digits MLP, late", digits_mlp.LATE, 0.1, batch_size=512), 300),
    Plan(lambda: characters.CharacterTraining("moving transformer, 200 steps", 200, 0.1), 300),
)
