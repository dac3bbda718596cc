"""From a run's metric to the steps it needed, and from a grid of trials to the best one at each batch size."""
