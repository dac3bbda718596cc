"""HTTP that every room of the API stands on: bodies, errors, cursors, OpenAPI, health."""
