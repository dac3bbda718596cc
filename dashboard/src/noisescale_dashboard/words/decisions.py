"""The words of a decision, as the API says them: what each means to a reader, and which are alike."""

CHANGES = ("increase", "decrease")
"""Worth a change, with a probability of 80 % and more."""

LIKELY = ("probably_increase", "probably_decrease")
"""Likely worth one, from 60 % on."""

MOVES = (*CHANGES, *LIKELY)

KEPT = ("keep", "keep_for_now")
UNDECIDED = "insufficient_evidence"
DECISIONS = (*CHANGES, *LIKELY, *KEPT, UNDECIDED)

RAISED, LOWERED = ("increase", "probably_increase"), ("decrease", "probably_decrease")
