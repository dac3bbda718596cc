"""One file a URL: `layout(...)` returns the page, `register(app, api)` its callbacks."""
