"""SQL for the learning rate: the path of the parameters."""
