"""Where people already are: callbacks for training frameworks and mirrors into trackers.

Each module needs a package of its own (`pip install "./client[huggingface]"` in a checkout); nothing else
imports it.
"""
