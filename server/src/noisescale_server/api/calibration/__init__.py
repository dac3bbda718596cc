"""HTTP for calibration: κ from sweeps and branches, and how often the advice came true."""
