"""Tasks by their data, built when asked for; data ship with scikit-learn and Python, nothing is downloaded."""
