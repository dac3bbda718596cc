"""Parameters for which no formula of a layer is known."""
