"""HTTP for the learning rate: whether it is right, from the path of the parameters."""
