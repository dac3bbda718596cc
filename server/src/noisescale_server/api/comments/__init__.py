"""HTTP for what people say about runs."""
