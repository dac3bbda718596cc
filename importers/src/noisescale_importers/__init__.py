"""Runs that exist already, brought to a noisescale server through the stream protocol of a job."""
