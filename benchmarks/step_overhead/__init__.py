"""What watching costs whole training steps of a small GPT."""
