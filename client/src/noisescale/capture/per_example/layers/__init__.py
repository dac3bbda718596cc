"""What each example contributes to the parameters of a layer, by kind of layer."""
