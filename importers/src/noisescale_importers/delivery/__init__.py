"""From the rows of a source to records that the server has exactly once."""
