"""Parameters whose use in the forward is followed in autograd's graph."""
