"""What runs or changes trainings with noisescale: follow the noise scale, branch, sweep, reproduce its claim.

`noisescale.follow`, `noisescale.branch` and `noisescale.sweep` are these; see docs/following.md and docs/sweeps.md.
"""
