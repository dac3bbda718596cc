"""Names of files, columns and runs as a terminal and the server can take them: sources may hold anything."""

MAX_NAME = 256


def shown(text: object, longest: int = 120) -> str:
    """The text with every character that is not printable as U+FFFD, and its middle left out where it is long."""
    clean = "".join(c if c.isprintable() else "\ufffd" for c in str(text))
    if len(clean) <= longest:
        return clean
    half = (longest - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def is_name(text: str) -> bool:
    """Whether the server takes it for the name of a metric, a run or a task."""
    return bool(text.strip()) and len(text) <= MAX_NAME and text.isprintable()


def as_name(text: str) -> str | None:
    """The text as a name that the server takes; None where nothing is left of it."""
    name = shown(text.strip(), MAX_NAME)
    return name if is_name(name) else None
