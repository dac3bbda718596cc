"""From which address a request comes: the connection says it, and behind trusted proxies what these have written down.

Whom somebody claims to be in `X-Forwarded-For` counts only as far as proxies of ours have carried it.
"""

from collections.abc import Sequence
from ipaddress import IPV6LENGTH, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

UNKNOWN_ADDRESS: Final = "unknown"
FORWARDED_FOR: Final = "x-forwarded-for"
HOST_BITS: Final = 64
"""Of an IPv6 address: whoever has one has them all."""


def client_address(scope: Scope, headers: Headers, trusted: Sequence[IPv4Network | IPv6Network]) -> str:
    """The nearest address that is none of our proxies.

    Each proxy appends whom it was asked by, so the list is read from its end. What is no address ends it: the proxy
    that passed it on stands for it.
    """
    peer: str = scope["client"][0] if scope.get("client") else UNKNOWN_ADDRESS
    address = str(parsed(peer) or peer)
    said = [one.strip() for line in headers.getlist(FORWARDED_FOR) for one in line.split(",")] if trusted else []
    while said and is_within(address, trusted):
        before = parsed(said.pop())
        if before is None:
            break
        address = str(before)
    return address


def counted_as(address: str) -> str:
    """By what a limit counts a sender: its address, or the /64 of an IPv6 one, of which everybody has all addresses."""
    known = parsed(address)
    if not isinstance(known, IPv6Address):
        return address
    return f"{IPv6Address(int(known) >> HOST_BITS << HOST_BITS)}/{IPV6LENGTH - HOST_BITS}"


def is_within(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether the address belongs to one of the networks."""
    known = parsed(address)
    return known is not None and any(known in network for network in networks)


def parsed(text: str) -> IPv4Address | IPv6Address | None:
    """The address, an IPv4 one where it is written as IPv6 (`::ffff:10.0.0.1`); None for what is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
