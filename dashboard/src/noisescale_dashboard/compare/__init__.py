"""The page that sets runs, configurations and tasks against each other."""
