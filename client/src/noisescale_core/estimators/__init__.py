"""Pure estimators of the gradient noise scale: numbers in, numbers out."""
