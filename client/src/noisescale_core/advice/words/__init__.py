"""The sentences of an advice, each beside its reason: of a run, of a task before its first step, of the rows' flags."""
