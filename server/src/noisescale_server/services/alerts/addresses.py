"""Where messages may go: to the public Internet, and to what the server's settings allow by name.

A receiver's address comes from people who may not reach the server's own network. So the host is resolved here, every
address that it has is looked at, and the connection is made to the one that was looked at, not to the name again.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from noisescale_server.services.platform.errors import refuse

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and port to its addresses."""

MAX_URL: Final = 2_048

# public in form, and answered by the cloud's own machines
OF_CLOUDS: Final = frozenset(
    {
        ipaddress.ip_address("168.63.129.16"),  # Azure's
        ipaddress.ip_address("100.100.100.200"),  # Alibaba's
        ipaddress.ip_address("192.0.0.192"),  # Oracle's
    }
)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

# of a network's own translation (RFC 8215), which may hold the inner address in other places than the last four bytes
_LOCAL_NAT64: Final = ipaddress.ip_network("64:ff9b:1::/48")


class ForbiddenAddress(Exception):
    """A message would go where none may go; says why."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect to.

    Attributes:
        addresses: That were looked at, in the order in which to try them.
        host: The name, for the certificate and the Host header.
        port: TCP port.
        is_encrypted: By TLS.
        path: With its query.
    """

    addresses: tuple[str, ...]
    host: str
    port: int
    is_encrypted: bool
    path: str


def check_form(url: str, allowed: Collection[str], field: str = "url") -> None:
    """Refuse an address that no message could go to, before any name is looked up.

    Args:
        url: Of a receiver.
        allowed: Hosts that the server's settings name.
        field: That holds it.

    Raises:
        InvalidInput: Says why.
    """
    try:
        parts = _parts(url, allowed)
        address = _literal(parts.hostname or "")
        if address is not None and (parts.hostname or "") not in allowed:
            check_address(address)
    except ForbiddenAddress as error:
        raise refuse(field, f"{error}: give a public https address, or let NOISESCALE_ALERT_HOSTS name it") from error


async def target_of(url: str, allowed: Collection[str], resolve: Resolve) -> Endpoint:
    """Where to connect to for this address; every address of its host is looked at.

    Args:
        url: Of a receiver.
        allowed: Hosts that may be anywhere, and speak without TLS.
        resolve: Asks for addresses of a name.

    Raises:
        ForbiddenAddress: Where a message may not go.
        OSError: Where the name has no address.
    """
    parts = _parts(url, allowed)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = await resolve(host, port)
    if not found:
        raise OSError(f"{host} has no address")
    if host not in allowed:
        _check_all(host, found)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(tuple(dict.fromkeys(found)), host, port, parts.scheme == "https", path)


def _check_all(host: str, found: Sequence[str]) -> None:
    """Raise where one of the addresses may not be; of a name it is not said: a private one is nobody's news."""
    try:
        for one in found:
            check_address(ipaddress.ip_address(one.partition("%")[0]))
    except ForbiddenAddress as error:
        if _literal(host) is not None:
            raise
        raise ForbiddenAddress(f"{host} has an address that is not of the public Internet") from error


def check_address(address: IP) -> None:
    """Raise unless the address is one of the public Internet, whatever form it is written in.

    Raises:
        ForbiddenAddress: For private, loopback, link-local, multicast and reserved ones, and those of clouds.
    """
    inner = _inside(address)
    for one in (address, *([] if inner is None else [inner])):
        is_public = one.is_global and not (one.is_multicast or one.is_reserved or one.is_unspecified)
        # an address that is only a wrapping is no public one in itself
        is_wrapping = inner is not None and one is address
        if one in OF_CLOUDS or one in _LOCAL_NAT64 or not (is_public or is_wrapping):
            raise ForbiddenAddress(f"{one} is no address of the public Internet")


def _inside(address: IP) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for; None where it stands for itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    is_compatible = address.packed[:12] == bytes(12) and int(address) > 1
    if is_compatible or address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return None


def _parts(url: str, allowed: Collection[str]) -> SplitResult:
    if len(url) > MAX_URL or not url.isascii() or any(one <= " " or one in "\\\x7f" for one in url):
        raise ForbiddenAddress("an address is at most 2,048 plain characters, without spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ForbiddenAddress(f"no address can be read from it ({error})") from error
    if not parts.hostname:
        raise ForbiddenAddress("it names no host")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in allowed):
        raise ForbiddenAddress(f"messages are sent by https, got {parts.scheme or 'no scheme'}")
    if parts.username is not None or parts.password is not None:
        raise ForbiddenAddress("it holds a user or a password")
    if port == 0:
        raise ForbiddenAddress("port 0 is none")
    return parts


def _literal(host: str) -> IP | None:
    """The address that a host is, in any way of writing one that a resolver takes; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        # 2130706433, 0x7f.1 and 017700000001 are 127.0.0.1 to every resolver
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None
