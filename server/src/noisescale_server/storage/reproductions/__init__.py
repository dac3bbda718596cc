"""SQL for what reproductions of published claims found."""
