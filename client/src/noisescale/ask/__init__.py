"""Asking for a recommendation from Python: from the server, or from the job's own measurements."""
