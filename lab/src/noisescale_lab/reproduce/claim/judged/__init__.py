"""Claims held against what was measured."""
