"""Short branches from a run's present state: the same examples at several batch sizes or learning rates."""
