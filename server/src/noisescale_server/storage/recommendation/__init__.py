"""SQL for which batch size now, why and how sure."""
