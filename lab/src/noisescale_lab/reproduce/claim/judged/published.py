"""The published noise scales and critical batches, as a second series beside one's own.

Averages over training, where both numbers are single ones; a range over games and a lower bound are left out.

Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1.
"""

from noisescale_lab.reproduce.claim.judged.agreement_over_tasks import Point

PUBLISHED = (
    Point("MNIST", None, 900, 200),
    Point("SVHN", None, 4_000, 500),
    Point("CIFAR10", None, 2_000, 900),
    Point("ImageNet (ResNet-50)", None, 30_000, 15_000),
    Point("Autoencoder (SVHN)", None, 2, 40),
    Point("VAE (SVHN)", None, 10, 200),
    Point("Billion Word LM (LSTM)", None, 150_000, 100_000),
    Point("Dota 1v1 (PPO)", None, 300_000, 3_000_000),
)
