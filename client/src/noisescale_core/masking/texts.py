"""Secrets inside a longer text: a command line, an environment, an address, what an object prints."""

import re
from typing import Final

from noisescale_core.masking.names import names_a_secret, names_a_secret_number, names_a_secret_text
from noisescale_core.masking.shapes import SCHEME, SHAPE, URL_PASSWORD, URL_QUERY, URL_TOKEN, WEBHOOK

MASK: Final = "[masked]"

# the value is not part of what is found: another name may stand in it
_ASSIGNED: Final = re.compile(
    r"(?<![\w.\-])-{0,2}(?P<name>[A-Za-z][\w.\-]{0,100})[\"']?\s{0,3}(?:=|:(?=[\s\"']))\s{0,3}(?P<quote>[\"']?)"
)
_FLAG: Final = re.compile(r"(?<!\S)--?(?P<name>[A-Za-z][\w.\-]{0,100})\s{1,3}(?P<quote>[\"']?)(?!-)")
_VALUE: Final = re.compile(r"[^\s\"'&;,)\]}]{1,4096}")
_NUMBER: Final = re.compile(r"[+\-]?[\d_.,]{1,40}(?:e[+\-]?\d{1,3})?|true|false|none|null", re.I)
DIGITS: Final = 4
"""Of the shortest number that may be a secret by the name before it alone."""
_IN_ADDRESSES: Final = ("sig", "signature", "x-amz-signature", "x-amz-credential", "x-amz-security-token")
"""Names of what signs an address."""


def masked_text(text: str) -> str:
    """The text with the secrets in it replaced."""
    for pattern in (WEBHOOK, URL_PASSWORD, URL_TOKEN, URL_QUERY, SCHEME):
        text = pattern.sub(rf"\g<before>{MASK}", text)
    text = SHAPE.sub(MASK, text)
    for pattern in (_ASSIGNED, _FLAG):
        text = _without_values(text, pattern)
    return text


def is_secret_value(name: str, value: str) -> bool:
    """Whether a text is a secret by the name before it."""
    if not value or (_NUMBER.fullmatch(value) and not _is_secret_number(name, value)):
        return False
    return _may_name_a_secret(name)


def _is_secret_number(name: str, value: str) -> bool:
    return names_a_secret(name) or (value.isdigit() and len(value) >= DIGITS and names_a_secret_number(name))


def _may_name_a_secret(name: str) -> bool:
    return names_a_secret(name) or names_a_secret_text(name) or name.lower() in _IN_ADDRESSES


def _without_values(text: str, pattern: re.Pattern[str]) -> str:
    parts, end = [], 0
    for found in pattern.finditer(text):
        start = found.end()
        if start < end or text.startswith(MASK, start) or not _may_name_a_secret(found["name"]):
            continue
        stop = _end_of_value(text, start, found["quote"])
        if is_secret_value(found["name"], text[start:stop]):
            parts += [text[end:start], MASK]
            end = stop
    return "".join([*parts, text[end:]]) if parts else text


def _end_of_value(text: str, start: int, quote: str) -> int:
    if quote:
        closing = text.find(quote, start)
        return len(text) if closing < 0 else closing
    value = _VALUE.match(text, start)
    return start if value is None else value.end()
