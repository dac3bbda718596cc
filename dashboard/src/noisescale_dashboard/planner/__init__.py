"""The page that plans a training: which batch, how many devices, at what time and cost."""
