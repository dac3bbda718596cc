"""What is measured where there is a GPU, in stages, the most telling first: `python benchmarks/gpu/run_all.py`."""
