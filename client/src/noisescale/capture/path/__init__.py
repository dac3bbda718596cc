"""How far the parameters get for the updates that are made: read off the optimizer's steps, now and then."""
