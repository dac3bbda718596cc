"""From what a step gave to the rows that are sent, of each kind of noise scale."""
