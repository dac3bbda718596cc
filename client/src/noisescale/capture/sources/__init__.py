"""What takes a backward apart into small batches: examples, or parts of a forward."""
