"""Plain functions for the learning rate: whether it is right, from the path of the parameters and runs of one's own."""
