"""The one error of the fits: data of which nothing can be computed at all."""


class AnalysisError(ValueError):
    """Malformed data; the message names the field, the value and the way out.

    Data that are well formed and do not determine an answer are no error: functions return a refusal with its reason.
    """
