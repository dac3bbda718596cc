"""From steps to a target at several batch sizes to S_min, E_min and B_crit, or to the reason why not."""
