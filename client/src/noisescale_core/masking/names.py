"""Which names are those of secrets."""

import re
from typing import Final

SECRET_WORDS: Final = frozenset(
    {
        "password", "passwords", "passwd", "passphrase", "passphrases", "pwd", "secret", "secrets", "credential",
        "credentials", "creds", "apikey", "apikeys", "auth", "authorization", "bearer", "cookie", "cookies", "dsn",
        "dsns", "webhook", "webhooks",
    }
)  # fmt: skip
"""A name with one of these words is that of a secret, whatever is under it."""
SECRET_ENDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "secretkey",
    "accesskey",
    "authtoken",
    "accesstoken",
)
"""The same for names that are written without a break: `dbpassword`."""
KEY_QUALIFIERS: Final = frozenset(
    {"api", "private", "access", "secret", "signing", "encryption", "ssh", "gpg", "pgp", "rsa", "account", "storage",
     "shared", "master", "service", "deploy", "license"}
)  # fmt: skip
HARMLESS_TOKENS: Final = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "cls", "sep", "start", "end", "stop", "special", "image", "per", "new", "num"}
)
HARMLESS_PASSES: Final = frozenset({"forward", "backward", "first", "second", "single", "one", "two", "multi", "per"})

_WORD: Final = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*")
MAX_NAME: Final = 256
"""Longer ones are cut: a name that is a whole document is none."""


def names_a_secret(name: str) -> bool:
    """Whether whatever is under this name is a secret: `db.password`, `credentials`; not `secretary`."""
    words = _words(name)
    return not SECRET_WORDS.isdisjoint(words) or any(word.endswith(SECRET_ENDS) for word in words)


def ends_in_a_secret(name: str) -> bool:
    """Whether a number under this name is a secret, too: `password`; not `auth_timeout`."""
    return bool(words := _words(name)) and (words[-1] in SECRET_WORDS or words[-1].endswith(SECRET_ENDS))


def names_a_secret_text(name: str) -> bool:
    """Whether a text under this name is a secret, though a number is not: `hf_token`; not `pad_token`."""
    words = _words(name)
    before, last = (["", *words])[-2:] if words else ("", "")
    if last in ("key", "keys"):
        return before in KEY_QUALIFIERS
    if last in ("token", "tokens"):
        return before not in HARMLESS_TOKENS
    return last == "pass" and before not in HARMLESS_PASSES


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name[-MAX_NAME:])]
