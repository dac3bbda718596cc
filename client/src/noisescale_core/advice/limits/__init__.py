"""What a plan may take and what a step is worth: pace, prices, bounds, predictions."""
