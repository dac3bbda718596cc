"""The text of an API key: `ns_<w|r|m|a>_<id>_<secret>_<checksum>`.

The prefix lets scanners and log filters find it, the checksum lets a typing mistake be refused without a query.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass, field
from typing import Final, Literal

Scope = Literal["write", "read", "metrics", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("write", "read", "metrics", "admin")

ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_CHARACTERS: Final = 10
SECRET_CHARACTERS: Final = 43
"""62^43 > 2^256: the secret holds 32 bytes."""
CHECKSUM_CHARACTERS: Final = 6

_KEY = re.compile(
    rf"ns_(?P<scope>[wrma])_(?P<id>[0-9A-Za-z]{{{ID_CHARACTERS}}})"
    rf"_(?P<secret>[0-9A-Za-z]{{{SECRET_CHARACTERS}}})_(?P<checksum>[0-9A-Za-z]{{{CHECKSUM_CHARACTERS}}})"
)


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key in its parts; only `text` and `secret` are secret, and neither is printed by accident."""

    scope: Scope
    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """What its holder sends."""
        body = f"ns_{self.scope[0]}_{self.id}_{self.secret}"
        return f"{body}_{checksum(body)}"

    @property
    def shown(self) -> str:
        """What may be shown later: enough to tell it from others."""
        return f"ns_{self.scope[0]}_{self.id}_…"


def new(scope: Scope) -> KeyText:
    """A key nobody has seen."""
    return KeyText(scope, _random(ID_CHARACTERS), _random(SECRET_CHARACTERS))


def parse(text: str) -> KeyText | None:
    """The key in its parts; None where the form or the checksum is wrong."""
    found = _KEY.fullmatch(text)
    if found is None or not hmac.compare_digest(checksum(text.rpartition("_")[0]), found["checksum"]):
        return None
    scope = next(scope for scope in SCOPES if scope[0] == found["scope"])
    return KeyText(scope, found["id"], found["secret"])


def checksum(body: str) -> str:
    """Six characters that follow from the others."""
    number = zlib.crc32(body.encode())
    digits = []
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def keyed_hash(pepper: bytes, secret: str) -> bytes:
    """What is kept of a secret: worth nothing to whoever reads the database without the pepper."""
    return hmac.new(pepper, secret.encode(), hashlib.sha256).digest()


def _random(characters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(characters))
