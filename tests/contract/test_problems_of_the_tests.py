"""What the tests of the client take for problems of the server are problems of the server."""

from noisescale_server.api.platform.errors import PROBLEMS
from simulated_proxy import OURS


def test_the_proxy_of_the_tests_knows_the_servers_own_problems() -> None:
    known = {(status, slug) for status, slug, _ in PROBLEMS.values()}

    assert {(status, slug) for status, slugs in OURS.items() for slug in slugs} <= known
