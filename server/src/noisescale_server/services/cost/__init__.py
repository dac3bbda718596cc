"""What trainings cost, to a target and in search of one: read, priced, put in order."""
