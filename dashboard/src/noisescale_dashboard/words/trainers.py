"""Trainers that a recommendation is written for, and what stands there for any other."""

from noisescale_dashboard.answers.advice import Recommendation

TRAINERS = {
    "megatron": "Megatron",
    "torchtitan": "torchtitan",
    "nanogpt": "nanoGPT",
    "huggingface": "Hugging Face",
}
"""What the API writes a schedule for, by its own word, and the trainer's name."""

PLAIN = "plain"
CHOICES = {**TRAINERS, PLAIN: "Any other: batch and rate"}


def in_plain_words(advice: Recommendation) -> str:
    """Batch and learning rate for a training loop of one's own, with the reason as a comment."""
    lines = [f"# {advice.headline}: {advice.short_reason}", f"batch_size = {advice.recommended_batch_size:.0f}"]
    if advice.learning_rate.recommended is not None:
        lines.append(f"learning_rate = {advice.learning_rate.recommended:.3g}")
    return "\n".join(lines) + "\n"
