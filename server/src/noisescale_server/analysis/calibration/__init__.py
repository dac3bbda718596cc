"""Statistics for calibration: κ from sweeps, branches and followed runs, and how often the advice came true."""
