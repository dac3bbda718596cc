"""A run's recommendation on two pages that can be printed and sent: one document, for the browser and as a file."""
