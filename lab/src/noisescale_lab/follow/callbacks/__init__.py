"""`follow` as a callback of Hugging Face's Trainer and of Lightning."""
