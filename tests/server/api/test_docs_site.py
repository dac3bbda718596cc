"""The documentation under /docs/."""

import httpx
from fastapi import FastAPI

from app_in_process import client_of, running_app
from known_routes import with_known_routes
from noisescale_server.api.platform import docs


async def test_the_pages_that_were_built_are_served_with_a_policy_that_lets_their_own_scripts_run(tmp_path):
    (tmp_path / "index.html").write_text("<title>noisescale</title>")
    (tmp_path / "measuring").mkdir()
    (tmp_path / "measuring" / "index.html").write_text("Measuring")

    app = FastAPI(docs_url=None)
    docs.serve_documentation(app, tmp_path)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        first, page = await client.get("/docs/"), await client.get("/docs/measuring/")
        folder, nothing = await client.get("/docs/measuring"), await client.get("/docs/nothing/")

    assert (first.status_code, page.text) == (200, "Measuring")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert folder.headers["location"].endswith("/docs/measuring/")
    assert nothing.status_code == 404


async def test_a_checkout_without_them_shows_the_description_of_the_api(tmp_path):
    app = FastAPI(docs_url=None)
    docs.serve_documentation(app, tmp_path)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        answers = [await client.get(path) for path in ("/docs", "/docs/", "/docs/measuring/")]

    assert [answer.headers["location"] for answer in answers] == ["/openapi"] * 3


async def test_who_is_not_known_does_not_read_them(new_database):
    async with running_app(new_database()) as app, client_of(app, {}) as client:
        assert (await client.get("/docs/")).status_code == 401


def test_servers_of_one_test_process_may_start_before_and_after_the_pages_are_built(tmp_path):
    """Another test builds them into the sources meanwhile."""
    served = []
    for pages in (False, True, False, True):
        (tmp_path / "index.html").write_text("") if pages else (tmp_path / "index.html").unlink(missing_ok=True)
        app = FastAPI(docs_url=None)
        docs.serve_documentation(app, tmp_path)
        served.append([type(route).__name__ for route in with_known_routes(app).router.routes if "/docs" in route.path])

    assert served[:2] == served[2:]
    assert ("Mount" in served[0], "Mount" in served[1]) == (False, True)
