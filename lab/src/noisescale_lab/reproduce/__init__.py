"""Real training tasks small enough to train by the hundred, for testing what the noise scale promises.

Needs PyTorch and scikit-learn (`pip install torch scikit-learn pillow`); nothing else imports what is here.
"""
