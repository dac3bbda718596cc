"""Tasks of text: characters of documents that ship with Python."""
