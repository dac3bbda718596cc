"""A run as a training job has it: begun, logged to, finished."""
