"""What a server has stored, asked for by its name or id: for commands and assistants."""
