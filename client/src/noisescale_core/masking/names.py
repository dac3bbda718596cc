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
    "secret",
    "privatekey",
    "encryptionkey",
    "signingkey",
)
"""The same for names that are written without a break: `dbpassword`, `clientsecret`."""
KEY_QUALIFIERS: Final = frozenset(
    {"api", "private", "access", "secret", "signing", "encryption", "ssh", "gpg", "pgp", "rsa", "account", "storage",
     "shared", "master", "service", "deploy", "license", "wandb", "hf", "huggingface", "openai", "anthropic", "comet",
     "neptune", "aws", "gcp", "azure", "github", "gitlab", "slack", "stripe", "sendgrid"}
)  # fmt: skip
SECRET_TEXTS: Final = frozenset({"pat", "jwt"})
"""A text under a name that ends so is a secret: a personal access token, a signed one."""
AFTERTHOUGHTS: Final = frozenset(
    {"value", "text", "string", "ro", "rw", "read", "write", "readonly", "prod", "dev", "test"}
)
"""What is written after the name of a secret: `hf_token_ro`, `api_key_value`."""
HARMLESS_TOKENS: Final = frozenset(
    {"pad", "eos", "bos", "unk", "mask", "cls", "sep", "start", "end", "stop", "special", "image", "per", "new", "num"}
)
OWNERS_OF_TOKENS: Final = KEY_QUALIFIERS | {
    "auth", "access", "bearer", "bot", "csrf", "session", "refresh", "user", "client", "app", "login", "hub", "id",
    "device", "web", "personal", "security", "registry", "read", "write", "admin", "my",
}  # fmt: skip
"""Words before `token` whose token is a secret though it be a number; before others it counts tokens of a text."""
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


def names_a_secret_number(name: str) -> bool:
    """Whether a long number under this name is a secret: `token`, `api_key`; not `max_token`, nor `train_tokens`."""
    before, last = _end(name)
    if last in ("token", "key", "keys"):
        return before in (OWNERS_OF_TOKENS if last == "token" else KEY_QUALIFIERS) or (before, last) == ("", "token")
    return last in SECRET_TEXTS


def names_a_secret_text(name: str) -> bool:
    """Whether a text under this name is a secret, though a number is not: `hf_token`; not `pad_token`."""
    before, last = _end(name)
    if last in ("key", "keys"):
        return before in KEY_QUALIFIERS
    if last in ("token", "tokens"):
        return before not in HARMLESS_TOKENS
    return last in SECRET_TEXTS or (last == "pass" and before not in HARMLESS_PASSES)


def _end(name: str) -> tuple[str, str]:
    """The last two words of a name, without what is written after that of a secret."""
    words = _words(name)
    while len(words) > 1 and words[-1] in AFTERTHOUGHTS:
        words.pop()
    before, last = (["", *words])[-2:] if words else ("", "")
    if last.endswith("token") and last != "token":  # written without a break
        return last.removesuffix("token"), "token"
    return before, last


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name[-MAX_NAME:])]
