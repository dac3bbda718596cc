"""How good is advice? Runs from wrong starts follow a policy and are charged for everything until their target."""
