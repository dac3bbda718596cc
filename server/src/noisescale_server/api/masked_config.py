"""Configs without the secrets that people leave in them: what is not stored cannot leak."""

import re
from typing import Any, Final

MASK: Final = "[masked]"
SECRET_NAME: Final = re.compile(
    r"(?:^|[_\-.])(?:pass(?:word|wd|phrase)?|secret|credentials?|bearer|(?:api|access|private|secret)[_\-]?key"
    r"|(?:auth|access|api|bot|refresh|session|hf|wandb)[_\-]?token|token|authorization)$",
    re.IGNORECASE,
)
"""Names that end in a word for a secret: `hf_token`, `db.password`; not `num_tokens` and not `tokenizer`."""
OWN_KEY: Final = re.compile(r"ns_[wra]_[0-9A-Za-z]{10}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}")
URL_PASSWORD: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.\-]*://[^\s/:@]*:)[^\s/@]+(?=@)", re.IGNORECASE)


def masked(value: Any, name: str = "") -> Any:
    """The value with texts under a secret's name replaced, and keys and passwords within other texts."""
    match value:
        case str() if value and SECRET_NAME.search(name):
            return MASK
        case str():
            return URL_PASSWORD.sub(rf"\g<before>{MASK}", OWN_KEY.sub(MASK, value))
        case dict():
            return {key: masked(item, str(key)) for key, item in value.items()}
        case list():
            return [masked(item, name) for item in value]
        case _:
            return value
