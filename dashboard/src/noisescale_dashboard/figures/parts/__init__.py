"""What figures are made of: theme, axes, labels, the table behind a figure."""
