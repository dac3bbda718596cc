"""From a run to where its records wait: the spool, the uploader, and what is said when a job ends."""
