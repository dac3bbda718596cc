"""The pages of sweeps, branches and published sweeps."""
