"""Keys and login links do not reach the log, whoever writes to it and whatever error carries them."""

import contextlib
import logging
import re
from typing import Any, Final

SECRET: Final = re.compile(
    r"ns_(?P<scope>[wrma])_[0-9A-Za-z]{4}\w*|(?P<name>\b(?:link|token|code|state)=)[\w\-.~]{16,}"
)


def redacted(text: str) -> str:
    """The text without what logs in; enough is left to tell which kind it was."""
    return SECRET.sub(lambda found: f"ns_{found['scope']}_…****" if found["scope"] else f"{found['name']}****", text)


def install() -> None:
    """Redact every record of this process from now on, when it is made."""
    before = logging.getLogRecordFactory()

    def make(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = before(*arguments, **named)
        with contextlib.suppress(TypeError, ValueError):  # arguments that do not fit: logging says so itself
            record.msg, record.args = redacted(record.getMessage()), ()
        if record.exc_info and record.exc_info[1] is not None:
            # formatters take a text that is there, and do not write the traceback again
            record.exc_text = redacted(logging.Formatter().formatException(record.exc_info))
        return record

    logging.setLogRecordFactory(make)
