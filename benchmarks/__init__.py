"""Benchmarks: each file measures one promise and writes benchmarks/results/<what>.csv."""
