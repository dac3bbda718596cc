"""Secrets inside a longer text: a command line, an environment, an address, what an object prints."""

import re
from typing import Final

from noisescale_core.masking.names import names_a_secret, names_a_secret_number, names_a_secret_text

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
