"""Statistics for how a noise scale or a critical batch goes on."""
