"""The first page: which runs should change their batch size."""
