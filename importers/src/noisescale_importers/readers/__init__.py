"""One file an importer: each yields runs, and knows neither roles nor the server."""
