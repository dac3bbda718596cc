"""Following the advice inside a training job: batch and learning rate by `noisescale.theory.policy`, dry run first.

Nothing is loaded here: `noisescale.follow` is in `noisescale.following.follow`.
"""
