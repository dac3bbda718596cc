"""What training costs: time and money to a target, records, what a speed-up consists of, and how compute grew."""
