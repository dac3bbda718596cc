"""What every service stands on: errors, kept answers, and whether the database can be relied on."""
