"""Reading the REST API on behalf of one visitor at a time."""
