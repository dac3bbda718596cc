"""The page of what training costs: time and money to a target, records, and growth of compute."""
