"""What is known of the critical batch: windows, κ, progress, what is usual."""
