"""What a scrape reads of the database."""
