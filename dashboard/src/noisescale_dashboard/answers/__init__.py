"""What the REST API answers, as frozen dataclasses; the words are those of docs/rest.md."""
