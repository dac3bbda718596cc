"""Laws of the critical batch and the noise scale: over the loss, over steps, over examples; with clustered errors."""
