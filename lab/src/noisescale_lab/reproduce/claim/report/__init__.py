"""What a reproduction found, as tables, files and a page."""
