"""The page of settings: keys, people, the audit log."""
