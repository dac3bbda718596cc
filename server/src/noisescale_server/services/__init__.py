"""What the product does: plain functions that know neither HTTP nor SQL."""
