"""The page that says how often the advice was right here."""
