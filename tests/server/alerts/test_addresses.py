"""No message goes where none may go, however its address is written, and whatever a resolver says the second time."""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Sequence

import httpx
import pytest

from hostile_urls import FORMS, LITERALS, NAMES, URLS
from noisescale_server.process.settings import Settings
from noisescale_server.services.alerts import addresses, delivering
from noisescale_server.services.alerts.addresses import ForbiddenAddress, check_form, target_of
from noisescale_server.services.platform.errors import InvalidInput

PUBLIC = "93.184.215.14"


async def resolver(host: str, port: int) -> Sequence[str]:
    """What the system's resolver says of literals, and a hostile one of names."""
    return NAMES[host] if host in NAMES else await delivering.resolve(host, port)


class Connections(httpx.AsyncBaseTransport):
    """Writes down where somebody connects to, and answers 200."""

    def __init__(self) -> None:
        self.made: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.made.append(request)
        return httpx.Response(200)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    return Connections()


def sender_to(connections: Connections, resolve: addresses.Resolve, *allowed: str) -> delivering.Send:
    return delivering.sender(allowed, resolve=resolve, client=lambda: httpx.AsyncClient(transport=connections))


@pytest.mark.parametrize("url", URLS)
async def test_nothing_is_sent_to_a_hostile_address(connections: Connections, url: str) -> None:
    outcome = await sender_to(connections, resolver)(url, b"{}", {})

    assert connections.made == []
    assert not outcome.is_taken
    assert outcome.is_final, outcome


@pytest.mark.parametrize("url", [*FORMS, *LITERALS])
def test_what_is_hostile_in_itself_is_refused_when_somebody_asks_for_it(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_form(url, ())

    assert refused.value.problems[0].field == "url"


@pytest.mark.parametrize("url", ["https://example.com/x?y=1", "https://93.184.215.14:8443/", "https://[2606:4700::1]/"])
def test_public_addresses_are_taken(url: str) -> None:
    check_form(url, ())


async def test_a_name_is_looked_up_once_and_the_connection_goes_to_what_was_looked_at(connections: Connections) -> None:
    asked = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

    outcome = await sender_to(connections, rebinding)("https://rebind.example.com/hook?a=1", b"{}", {"webhook-id": "1"})

    (request,) = connections.made
    assert outcome.is_taken
    assert asked == ["rebind.example.com"]
    assert str(request.url) == f"https://{PUBLIC}/hook?a=1"
    assert request.headers["host"] == "rebind.example.com"
    # the certificate is asked for by the name
    assert request.extensions["sni_hostname"] == "rebind.example.com"


async def test_a_host_that_the_settings_name_may_be_anywhere_and_speak_http(connections: Connections) -> None:
    send = sender_to(connections, resolver, "localhost", "10.0.0.7")

    assert (await send("http://localhost:9000/hook", b"{}", {})).is_taken
    assert (await send("https://10.0.0.7/hook", b"{}", {})).is_taken
    assert not (await send("https://10.0.0.8/hook", b"{}", {})).is_taken

    assert [str(one.url) for one in connections.made] == ["http://127.0.0.1:9000/hook", "https://10.0.0.7/hook"]
    assert connections.made[0].headers["host"] == "localhost:9000"
    check_form("http://localhost:9000/hook", ("localhost",))


async def test_a_name_without_an_address_is_tried_again_later(connections: Connections) -> None:
    async def nobody(host: str, port: int) -> Sequence[str]:
        raise OSError(f"{host} is not known")

    outcome = await sender_to(connections, nobody)("https://example.com/", b"{}", {})

    assert (outcome.is_taken, outcome.is_final) == (False, False)
    assert "not known" in outcome.said


@pytest.mark.parametrize(
    "network",
    [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.2.0/24",
        "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "fc00::/7", "fe80::/10", "ff00::/8", "2001:db8::/32", "::ffff:10.0.0.0/104", "64:ff9b::a00:0/104",
        "2002:a00::/24",
    ],
)  # fmt: skip
def test_both_ends_of_every_network_that_is_not_public_are_refused(network: str) -> None:
    found = ipaddress.ip_network(network)
    for address in (found[0], found[1], found[-2], found[-1]):
        with pytest.raises(ForbiddenAddress):
            addresses.check_address(address)


async def test_a_name_with_one_hostile_address_among_public_ones_is_refused() -> None:
    with pytest.raises(ForbiddenAddress, match=r"two-faces\.example\.com") as refused:
        await target_of("https://two-faces.example.com/", (), resolver)

    # which addresses a network's own names have is no news for whoever can make a receiver
    assert "10.0.0.5" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://example.com/\x7f", "https://example.com/a?b=\x7f#c"])
async def test_an_address_that_no_client_takes_is_refused_and_never_tried_for_ever(
    connections: Connections, url: str
) -> None:
    with pytest.raises(InvalidInput):
        check_form(url, ())

    assert (await sender_to(connections, resolver)(url, b"{}", {})).is_final


async def test_an_address_behind_a_networks_own_translation_is_refused_wherever_it_is_written() -> None:
    # RFC 6052 writes 127.0.0.1 into bits 48 to 88 of a /48; the last four bytes are then anybody's
    with pytest.raises(ForbiddenAddress):
        addresses.check_address(ipaddress.ip_address("64:ff9b:1:7f00:0:100:808:808"))


async def test_where_one_address_of_a_host_takes_no_connection_the_next_one_is_tried() -> None:
    tried = []

    class Halves(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            tried.append(request.url.host)
            if ":" in request.url.host:
                raise httpx.ConnectError("no route")
            return httpx.Response(204)

    async def both(host: str, port: int) -> Sequence[str]:
        return ["2606:4700::1", PUBLIC]

    send = delivering.sender((), resolve=both, client=lambda: httpx.AsyncClient(transport=Halves()))

    assert (await send("https://example.com/", b"{}", {})).is_taken
    assert tried == ["2606:4700::1", PUBLIC]


async def test_a_message_that_may_have_been_read_goes_to_no_second_address() -> None:
    tried = []

    class Breaks(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            tried.append(request.url.host)
            raise httpx.ReadError("gone")

    async def both(host: str, port: int) -> Sequence[str]:
        return ["2606:4700::1", PUBLIC]

    send = delivering.sender((), resolve=both, client=lambda: httpx.AsyncClient(transport=Breaks()))

    assert not (await send("https://example.com/", b"{}", {})).is_taken
    assert tried == ["2606:4700::1"]


async def test_a_name_server_that_hangs_holds_no_thread_of_the_servers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *asked, **rest: free.wait(20) and [])
    waiting = [asyncio.create_task(delivering.resolve(f"{k}.example.com", 443)) for k in range(64)]
    try:
        await asyncio.sleep(0.05)
        # what recommendations and scrapes are computed in
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 5) == 1
    finally:
        free.set()
        await asyncio.gather(*waiting)


def test_hosts_that_the_settings_allow_are_read_in_any_case() -> None:
    assert Settings(alert_hosts=["Mattermost.Internal"]).alert_hosts == ["mattermost.internal"]
