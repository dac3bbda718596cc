"""The demo: four real training runs, small enough for a laptop, logged with the SDK like any other job."""
