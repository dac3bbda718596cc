"""HTTP for what training costs and how compute grew."""
