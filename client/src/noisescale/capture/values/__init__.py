"""The numbers of a step, on their way from the device to the host."""
