"""What the small batches of a step leave behind: their sums, sizes and lists of gradients."""
