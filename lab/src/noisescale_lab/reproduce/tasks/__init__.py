"""One task a file, built when asked for; data ship with scikit-learn and Python, nothing is downloaded."""
