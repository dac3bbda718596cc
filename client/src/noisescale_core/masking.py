"""Configs without the secrets that people leave in them: one list of rules, for the job and for the server.

By names (`hf_token`, `db.password`), by what stands before a value in a text (`--api-key x`, `PASSWORD=x`,
`postgresql://ada:x@db`) and by the shape of the value itself (`hf_…`, `sk-…`, webhooks).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

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

# What secrets look like wherever they stand: keys of well-known services, addresses that are keys, private keys.
#
# Every repetition is bounded, so that no text takes more than a time that grows with its length.

SHAPES: Final = (
    r"ns_[wrma]_[0-9A-Za-z]{10}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}",  # noisescale
    r"hf_[0-9A-Za-z]{20,100}",  # Hugging Face
    r"sk-[0-9A-Za-z_\-]{20,250}",  # OpenAI, Anthropic, OpenRouter
    r"(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,250}|whsec_[0-9A-Za-z+/=]{16,250}",  # Stripe
    r"gh[pousr]_[0-9A-Za-z]{36,255}|github_pat_[0-9A-Za-z_]{22,255}",
    r"glpat-[0-9A-Za-z_\-.]{20,255}",
    r"xox[abeoprs]-[0-9A-Za-z\-]{10,250}|xapp-[0-9A-Za-z\-]{10,250}",  # Slack
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}",  # AWS
    r"AIza[0-9A-Za-z_\-]{35}|ya29\.[0-9A-Za-z_\-]{20,1000}",  # Google
    r"pypi-AgEI[0-9A-Za-z_\-]{50,1000}|npm_[0-9A-Za-z]{36}",
    r"nvapi-[0-9A-Za-z_\-]{40,100}|r8_[0-9A-Za-z]{30,60}|gsk_[0-9A-Za-z]{40,100}|xai-[0-9A-Za-z]{40,120}",
    r"wandb_v\d{1,2}_[0-9A-Za-z_]{20,250}|lsv2_(?:pt|sk)_[0-9a-f_]{32,100}",
    r"do[opr]_v1_[0-9a-f]{64}|SG\.[0-9A-Za-z_\-]{22}\.[0-9A-Za-z_\-]{43}",
    r"eyJ[0-9A-Za-z_\-]{10,4000}\.eyJ[0-9A-Za-z_\-]{10,8000}\.[0-9A-Za-z_\-]{10,2000}",  # JSON web tokens
    r"\d{8,10}:AA[0-9A-Za-z_\-]{33}",  # bots of Telegram
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
)
SHAPE: Final = re.compile(r"(?<![0-9A-Za-z])(?:" + "|".join(SHAPES) + ")")

WEBHOOKS: Final = (
    r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/",
    r"(?:[a-z]{1,20}\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/",
    r"[a-z0-9\-]{1,60}\.webhook\.office\.com/|outlook\.office(?:365)?\.com/webhook/",  # Teams
    r"[a-z0-9.\-]{1,100}\.logic\.azure\.com(?::\d{1,5})?/|[a-z0-9.\-]{1,100}\.powerplatform\.com(?::\d{1,5})?/",
    r"hooks\.zapier\.com/hooks/|maker\.ifttt\.com/trigger/|hook\.[a-z0-9]{1,10}\.make\.com/|hook\.integromat\.com/",
    r"chat\.googleapis\.com/v1/spaces/|api\.telegram\.org/bot|events\.pagerduty\.com/(?:integration|x-ere)/",
    r"open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v2/)?hook/|qyapi\.weixin\.qq\.com/cgi-bin/webhook/",
    r"webhook\.site/|ntfy\.sh/",
    # Mattermost, Rocket.Chat, n8n and the like, wherever they are
    r"[a-z0-9.\-]{1,253}(?::\d{1,5})?/(?:[\w.\-]{1,60}/){0,4}(?:web)?hooks?/"
    r"(?=[\w\-/]{0,100}(?:[0-9a-z]{16}|[0-9a-f]{8}-))",
)
WEBHOOK: Final = re.compile(rf"(?P<before>\bhttps?://(?:{'|'.join(WEBHOOKS)}))[^\s\"'<>]{{1,2000}}", re.I)
"""Addresses to which whoever knows them may post."""
SCHEME: Final = re.compile(
    r"(?P<before>(?<![0-9A-Za-z])(?:bearer|basic)\s{1,3})[0-9A-Za-z._~+/\-]{16,4000}={0,2}", re.I
)
"""What stands in a header."""
URL_PASSWORD: Final = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.\-]{0,30}://[^\s/:@\"'\[]{0,256}:)(?!\d{1,5}[/?#])"
    r"(?:(?!://)[^\s\"']){1,256}(?=@[\w\[%])",
    re.I,
)
"""Up to the last `@`, whatever signs the password has; a number before a slash is a port."""
URL_QUERY: Final = re.compile(
    r"(?P<before>(?<=[\w/])(?:[?&]|&amp;)(?:key|code|sig|signature|token|auth"
    r"|[\w\-]{0,40}(?:api|access|auth|secret|subscription)[\-_]?(?:key|token)"
    r"|x-(?:amz|goog)-(?:signature|credential|security-token))=)[^\s&#\"'<>]{1,4096}",
    re.I,
)
"""What an address is asked with: `?key=…`, `&api_key=…`."""
URL_TOKEN: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.\-]{0,30}://)[0-9a-z_\-.]{20,256}(?=@)", re.I)
"""What stands before the host of an address: `https://<token>@github.com`, `https://<key>@o1.ingest.sentry.io/2`."""


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

SMALLEST_SECRET_NUMBER = 1000
"""Smaller ones under the name of a secret count or choose something."""
NAMES_OF_NAMES = ("name", "key", "variable", "header")
"""Where lists of settings say what each is called: `{"name": "HF_TOKEN", "value": "…"}`."""


# Which names are those of secrets.


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


# Secrets inside a longer text: a command line, an environment, an address, what an object prints.


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


# A config as JSON has it, without secrets.


def masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with its secrets replaced by `[masked]`, also where they are keys."""
    return _with_masked_keys({key: _under(str(key), value) for key, value in config.items()})


def _with_masked_keys(config: Mapping[Any, Any]) -> dict[Any, Any]:
    """The same entries; of keys that would be masked alike the second is `[masked] 2`."""
    shown: dict[Any, Any] = {}
    for key, value in config.items():
        name = masked_text(key) if isinstance(key, str) else key
        number = 1
        while name in shown:
            number += 1
            name = f"{masked_text(key)} {number}"
        shown[name] = value
    return shown


def _under(name: str, value: Any) -> Any:
    """The value as it may be shown under this name."""
    if names_a_secret(name) and not (isinstance(value, int | float) and not ends_in_a_secret(name)):
        return value if isinstance(value, bool) or value in (None, "", [], {}) else MASK
    if names_a_secret_text(name):
        return _values_masked(value, with_numbers=names_a_secret_number(name))
    return _inside(value)


def _values_masked(value: Any, *, with_numbers: bool) -> Any:
    match value:
        case str():
            return MASK if value else value
        case bool():
            return value
        case int() | float():
            return MASK if with_numbers and abs(value) >= SMALLEST_SECRET_NUMBER else value
        case Mapping():
            return _with_masked_keys(
                {key: _values_masked(item, with_numbers=with_numbers) for key, item in value.items()}
            )
        case list() | tuple():
            return [_values_masked(item, with_numbers=with_numbers) for item in value]
        case _:
            return value


def _inside(value: Any) -> Any:
    match value:
        case str():
            return masked_text(value)
        case Mapping():
            return _setting(masked(value))
        case list() | tuple():
            return list(_listed(value))
        case _:
            return value


def _setting(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a list of settings, whose name is a value itself."""
    name = next((entry[key] for key in NAMES_OF_NAMES if isinstance(entry.get(key), str)), None)
    value = entry.get("value")
    if name is not None and isinstance(value, str) and is_secret_value(name, value):
        return entry | {"value": MASK}
    return entry


def _listed(values: Sequence[Any]) -> Iterator[Any]:
    """A list; behind a flag or a name of a secret stands the secret: `["--api-key", "…"]`."""
    before: Any = None
    for value in values:
        is_text = isinstance(before, str) and isinstance(value, str) and not value.startswith("-")
        is_announced = is_text and _announces(before, len(values))
        yield MASK if is_announced and is_secret_value(before.lstrip("-"), value) else _inside(value)
        before = value


def _announces(text: str, length: int) -> bool:
    is_flag = text.startswith("-") and "=" not in text and " " not in text
    return is_flag or (length == 2 and " " not in text and "=" not in text)
