"""What pages, figures and reports say alike: numbers, decisions, kinds, sentences."""
