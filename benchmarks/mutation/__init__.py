"""Mutation testing: small bugs are planted one by one in a copy of the code, and the quick tests have to see them."""
