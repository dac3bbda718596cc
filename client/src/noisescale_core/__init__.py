"""The domain of noisescale: estimators, theory and advice, numbers in and numbers out, by the standard library alone.

It ships in the client's wheel and stands on nothing of it; the job, the server and the lab all stand on it.
"""
