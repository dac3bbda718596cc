"""What the page Learn says, a section a question; the word in its address is the key."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Section:
    """A question, and the paragraphs that answer it."""

    title: str
    paragraphs: tuple[str, ...]


SECTIONS: Final[Mapping[str, Section]] = MappingProxyType(
    {
        "what-is-a-noise-scale": Section(
            "What does noise scale mean?",
            (
                "A batch is a sample, and its gradient is an estimate. With few examples the estimate is mostly noise: "
                "the step goes partly in a random direction, and a larger batch would make it better. With many "
                "examples it is precise already, and more of them say the same again.",
                "The noise scale is the batch size between the two: there, noise and gradient are equally large. For "
                "example, at a noise scale of 1,000 images a batch of 100 is ten parts noise to one part gradient, and "
                "a batch of 10,000 is one to ten.",
            ),
        ),
        "small-and-large-batches": Section(
            "Is my batch too small or too large?",
            (
                "Far below the noise scale, twice the batch needs nearly half the steps: time is lost by staying "
                "small. Far above it, twice the batch needs as many steps as before: data and money are lost by being "
                "large. In between, steps and examples trade against each other along one curve.",
                "The critical batch is the middle of that curve: a run takes twice the fewest steps and twice the "
                "fewest examples there. What is best for you depends on what a step and an example are worth; say so "
                "in the planner or under “Plan with limits”.",
            ),
        ),
        "over-training": Section(
            "Why does it change during a run?",
            (
                "As a model learns, examples agree less on where to go next: the gradient shrinks, the scatter stays, "
                "and the noise scale rises, often tenfold. A batch that was right at the start is then too small, so "
                "it pays to raise it on the way. It also rises when the learning rate falls.",
            ),
        ),
        "measured": Section(
            "What is measured, and what does it cost?",
            (
                "A job compares squared gradient norms at two batch sizes that it has anyway: a micro-batch and the "
                "whole batch, or one device and all of them. Small batches are longer by their noise, and the "
                "difference gives noise and gradient apart. Where a step has one backward pass on one device, norms of "
                "single examples are read off it.",
                "Gradients stay in the job; a few numbers a step are sent. watch(model, overhead=0.01) "
                "measures only as often as one percent of the training time allows.",
            ),
        ),
        "how-sure": Section(
            "How sure is an answer?",
            (
                "Every recommendation has odds: sure from 95 %, likely from 80 %, probably from 60 %. They count how "
                "well the noise scale is measured, how far the critical batch may lie from it (κ), and how it goes on.",
                "κ is the factor between the two. Over published tasks it is between a seventh and seven, so a sweep "
                "or a short branch on this server, which measures it, makes the odds sharper. “How often were we "
                "right here?” holds stated odds against what came true.",
            ),
        ),
        "sweeps-and-branches": Section(
            "How is the critical batch itself measured?",
            (
                "A sweep trains one task at several batch sizes, each at its best learning rate, and counts steps to "
                "one target. The curve through them gives the fewest steps, the fewest examples and the critical "
                "batch. A branch is shorter: from where a run stands, a few steps at other batch sizes on the same "
                "examples.",
            ),
        ),
        "across-tasks": Section(
            "Does the noise scale predict the critical batch?",
            (
                "Over tasks whose critical batches lie far apart it does, within a factor that the page Compare shows "
                "for published tasks and for yours. For one task alone that factor matters, which is why intervals are "
                "wide until κ is known here. “noisescale reproduce” repeats the test from scratch.",
            ),
        ),
        "which-learning-rate": Section(
            "Is my learning rate right?",
            (
                "Parameters that keep going in one direction could go faster; parameters that turn back at every step "
                "go too fast. The path of a run is compared with that of runs whose best rate is known.",
                "A larger batch usually takes a larger rate: by the square root for Adam, by the noise scale for SGD. "
                "The card shows the rate that goes with the recommended batch.",
            ),
        ),
        "comparing": Section(
            "How do I compare two runs or optimizers?",
            (
                "In Compare, choose their runs: it sets them against each other at equal steps, time or loss, and "
                "Config says what differs. For two optimizers equal loss is the fair place, since equal steps are not "
                "equal progress; a sweep of each gives the critical batch of each. In Runs, “Group: optimizer” puts "
                "their medians side by side.",
            ),
        ),
        "no-answer": Section(
            "Why is there no answer for a run?",
            (
                "The gradient does not stand out from the noise yet: train on, or split each step into more "
                "micro-batches. Or the loss is not finite: nothing is estimated after that. Or two devices see the "
                "same data, or the parts of a step are not random samples: the run's page says which, and the way out.",
            ),
        ),
        "logging": Section(
            "How do I log from a laptop or a cluster, and turn it off?",
            (
                "On this machine a job finds the server by itself. On a cluster set NOISESCALE_URL and "
                "NOISESCALE_API_KEY (Settings makes keys; a write key reads nothing back). Without a network, "
                "NOISESCALE_MODE=offline keeps records on disk, and “noisescale sync” sends them later.",
                "NOISESCALE_MODE=disabled turns everything off: no hooks, no thread, nothing sent, and the script "
                "stays as it is.",
            ),
        ),
        "trainers": Section(
            "Does it work with my trainer, and with what I have logged?",
            (
                "Two lines go into a loop of your own, on one device or many; Hugging Face's Trainer, Accelerate and "
                "Lightning take a callback, and Megatron, torchtitan, DeepSpeed and JAX have recipes. A mirror writes "
                "the same numbers to W&B, MLflow or TensorBoard.",
                "“noisescale import” brings runs that W&B, MLflow, TensorBoard or a CSV file have already.",
            ),
        ),
        "together": Section(
            "How do we work on a run together?",
            (
                "Comments stand at the foot of a run's page, for the people of its project; an @ and a name mentions "
                "somebody. “Pin as baseline” lets Compare set the project's other runs against one run. “Views” shares "
                "what a page shows, under a name.",
                "For somebody outside, “Share” on a run's page makes a link that shows this run alone, for a time, and "
                "Report is one page to print. Alerts (Settings) tell a channel when a run goes wrong.",
            ),
        ),
        "data": Section(
            "Who can see this, where is it, how do I delete it?",
            (
                "A local server answers on this machine only. On a team's server members see their projects; Settings "
                "shows who they are. Raw data are under Records on a run's page, in the card menus (CSV, JSON) and in "
                "the REST API (/openapi). Gradients, data and weights never leave the job.",
                "In Runs, choose runs to archive or delete them; deleting takes all their data.",
            ),
        ),
        "what-can-go-wrong": Section(
            "What can go wrong?",
            (
                "For language models trained with Adam the noise scale is often too low. Layers that mix examples, "
                "such as batch normalisation or contrastive losses, make examples depend on each other. Late in a "
                "decaying schedule the noise scale rises because the rate falls; advice is then that of the steps "
                "before.",
            ),
        ),
    }
)
"""In the order of the page."""
