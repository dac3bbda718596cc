"""Real training tasks small enough to train by the hundred, for testing what the noise scale promises.

Needs PyTorch and scikit-learn (`pip install noisescale[reproduce]`). Nothing here is imported by `import noisescale`.
"""
