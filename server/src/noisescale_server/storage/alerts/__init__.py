"""Rules, receivers, events and what of them is still to be sent."""
