"""The best learning rate at each batch size of a sweep, and the curves that it may follow."""
