"""What every fit of a sweep stands on: likelihoods, regions, noise, lack of fit, and why there is none."""
