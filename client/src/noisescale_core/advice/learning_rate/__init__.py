"""Whether the learning rate is right, and what goes with another batch."""
