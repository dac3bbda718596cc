"""What a person is told, and the checks behind it."""
