"""Views of pages that a team shares."""
