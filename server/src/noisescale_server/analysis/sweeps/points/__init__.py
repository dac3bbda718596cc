"""What a sweep is made of: steps to a target, a point a batch size, and the curve through them."""
