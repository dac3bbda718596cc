"""Where people already are: callbacks for training frameworks and mirrors into trackers.

Each module needs a package of its own (`pip install noisescale[huggingface]`, ...); nothing else imports it.
"""
