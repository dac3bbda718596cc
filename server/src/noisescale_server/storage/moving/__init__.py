"""A project's rows on their way out of a database and into one."""
