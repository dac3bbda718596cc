"""Following the advice inside a training job: batch and rate by `noisescale_lab.follow.policy`, dry run first.

Nothing is loaded here: `noisescale.follow` is in `noisescale_lab.follow.follow`.
"""
