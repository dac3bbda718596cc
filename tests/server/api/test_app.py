"""What holds for the whole app: unknown paths, health, compression, documentation, a database that is away."""

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.responses import Response

from app_in_process import ADDRESS, AS_LOCAL_USER, client_of, local_settings, running_app
from as_owner import execute
from factories import make_batch
from noisescale_server.api.access.gate import Api
from noisescale_server.app import GZIP_FROM_BYTES, GZIP_LEVEL, ROUTERS, create_app
from noisescale_server.process.compression import Compression
from principals import PUBLIC_URL, SECRET
from problems import assert_problem
from stored_runs import store_run

UNREACHABLE = "postgresql://nobody@127.0.0.1:1/none"
TEAM = {"auth": "required", "secret_key": SECRET, "public_url": PUBLIC_URL, "local_token": None}


async def ask(app: FastAPI, path: str) -> httpx.Response:
    """The answer of an app that is not yet running."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=AS_LOCAL_USER) as client,
    ):
        return await client.get(path)


class TestUnknownPaths:
    @pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/v1", "/api/v1/runs/", "/api/v2/runs"])
    @pytest.mark.parametrize(
        "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
    )
    async def test_below_api_they_are_404_problems_for_every_method(
        self, shared_client: httpx.AsyncClient, method: str, path: str
    ) -> None:
        answer = await shared_client.request(method, path)

        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"

    async def test_elsewhere_they_are_404_problems_too(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await shared_client.get("/nothing"), 404, "not-found")

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "PROPFIND"])
    async def test_another_method_on_a_known_path_is_405_and_says_which_would_do(
        self, shared_client: httpx.AsyncClient, method: str
    ) -> None:
        answer = await shared_client.request(method, "/api/v1/runs")

        assert_problem(answer, 405, "method-not-allowed")
        assert answer.headers["allow"] == "GET, POST"

    async def test_a_later_mounted_catch_all_does_not_answer_for_the_api(self, app: FastAPI) -> None:
        """As the dashboard's: it answers every unknown GET with a page."""
        app.mount("/", create_page())
        transport = httpx.ASGITransport(app)

        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=AS_LOCAL_USER) as client:
            page, unknown = await client.get("/anything"), await client.get("/api/anything")

        assert page.text == "page"
        assert_problem(unknown, 404, "not-found")


def create_page() -> FastAPI:
    """An app that answers everything."""
    page = FastAPI()

    @page.get("/{rest:path}")
    async def show(rest: str) -> PlainTextResponse:
        return PlainTextResponse("page")

    return page


class TestHealth:
    async def test_livez_needs_no_database(self) -> None:
        answer = await ask(create_app(local_settings(database_url=UNREACHABLE)), "/livez")

        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})

    async def test_readyz_is_ok_on_a_migrated_database_and_names_it(self, client: httpx.AsyncClient) -> None:
        stored = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch())
        answer = await client.get("/readyz")

        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert answer.json()["database_id"] == stored.json()["database_id"]

    async def test_readyz_is_503_while_a_migration_is_missing(
        self, app: FastAPI, client: httpx.AsyncClient, owner_url: str
    ) -> None:
        older = sorted(app.state.migrations.known - {app.state.migrations.newest})[0]
        await execute(owner_url, f"UPDATE alembic_version SET version_num = '{older}'")

        assert_problem(await client.get("/readyz"), 503, "schema-outdated")

    async def test_readyz_is_503_without_any_migration(self, client: httpx.AsyncClient, owner_url: str) -> None:
        await execute(owner_url, "DROP TABLE alembic_version")

        assert_problem(await client.get("/readyz"), 503, "schema-outdated")

    async def test_readyz_is_ok_with_the_schema_of_a_newer_release(
        self, client: httpx.AsyncClient, owner_url: str
    ) -> None:
        await execute(owner_url, "UPDATE alembic_version SET version_num = 'of_the_future'")

        assert (await client.get("/readyz")).status_code == 200


class TestDatabaseAway:
    @pytest.mark.parametrize("path", ["/readyz", "/api/v1/runs", "/api/v1/projects"])
    @pytest.mark.parametrize("url", [UNREACHABLE, "postgresql://nobody@/none?host=/nowhere/at-all"])
    async def test_it_is_503_with_retry_after(self, path: str, url: str) -> None:
        answer = await ask(create_app(local_settings(database_url=url)), path)

        assert_problem(answer, 503, "database-unreachable")
        assert int(answer.headers["retry-after"]) > 0

    def test_an_app_without_a_database_address_is_refused_with_the_way_out(self) -> None:
        with pytest.raises(ValueError, match="NOISESCALE_DATABASE_URL"):
            create_app(local_settings(database_url=None))


LONG = b"a noise scale, " * 1_000


def compressing(*, is_on_one_machine: bool) -> Compression:
    """Something that answers at length, compressed as the server does it."""
    return Compression(
        Response(LONG, media_type="text/plain"),
        minimum_size=GZIP_FROM_BYTES,
        compresslevel=GZIP_LEVEL,
        is_on_one_machine=is_on_one_machine,
    )


def answered_by(app: Compression, path: str, encoding: str) -> AbstractAsyncContextManager[httpx.Response]:
    """Its answer to a client that takes this encoding."""
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ADDRESS)
    return client.stream("GET", path, headers={"Accept-Encoding": encoding})


class TestCompression:
    @pytest.mark.parametrize(
        ("path", "is_on_one_machine"), [("/api/v1/anything", False), ("/runs", False), ("/runs", True)]
    )
    async def test_long_answers_are_gzipped_when_asked(self, path: str, is_on_one_machine: bool) -> None:
        async with answered_by(compressing(is_on_one_machine=is_on_one_machine), path, "gzip") as answer:
            raw = b"".join([chunk async for chunk in answer.aiter_raw()])

        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(raw) == LONG
        assert len(raw) < len(LONG) / 4

    async def test_nobody_gets_gzip_who_did_not_ask(self) -> None:
        async with answered_by(compressing(is_on_one_machine=False), "/api/v1/anything", "identity") as answer:
            assert await answer.aread() == LONG

        assert "content-encoding" not in answer.headers

    async def test_the_api_packs_nothing_that_stays_on_its_machine(self) -> None:
        async with answered_by(compressing(is_on_one_machine=True), "/api/v1/anything", "gzip") as answer:
            assert await answer.aread() == LONG

        assert "content-encoding" not in answer.headers

    async def test_a_local_server_is_on_one_machine(self, shared_client: httpx.AsyncClient) -> None:
        packed = {"Accept-Encoding": "gzip"}

        figures = await shared_client.get("/api/v1/reference-values", headers=packed)
        page = await shared_client.get("/openapi.json", headers=packed)

        assert "content-encoding" not in figures.headers
        assert page.headers["content-encoding"] == "gzip"

    def test_a_server_for_a_team_is_not(self) -> None:
        (compression,) = [
            one for one in create_app(local_settings(UNREACHABLE, **TEAM)).user_middleware if one.cls is Compression
        ]

        assert compression.kwargs["is_on_one_machine"] is False


class TestDocumentation:
    async def test_the_page_names_every_operation_and_loads_nothing(self, shared_client: httpx.AsyncClient) -> None:
        page = (await shared_client.get("/openapi")).text
        openapi = (await shared_client.get("/openapi.json")).json()

        for path, methods in openapi["paths"].items():
            for method in methods:
                assert f"{method.upper()} {path}" in page
        assert not re.search(r"<script|<link|<img|https?://", page)

    @pytest.mark.slow
    @pytest.mark.parametrize("path", ["/openapi.json", "/openapi"])
    async def test_it_is_written_once_for_all_requests(
        self, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch, path: str
    ) -> None:
        written = []
        before = Api.openapi

        def openapi(app: Api) -> dict[str, Any]:
            written.append(path)
            return before(app)

        monkeypatch.setattr(Api, "openapi", openapi)
        async with running_app(new_database()) as app, client_of(app) as client:
            answers = [(await client.get(path)).text for _ in range(3)]

        assert len(set(answers)) == 1
        assert written == [path]

    async def test_every_operation_of_version_1_documents_its_problems(self, shared_client: httpx.AsyncClient) -> None:
        openapi = (await shared_client.get("/openapi.json")).json()

        for path, methods in openapi["paths"].items():
            for operation in methods.values():
                if path.startswith("/api/v1"):
                    assert "application/problem+json" in operation["responses"]["422"]["content"]
                    assert "application/problem+json" in operation["responses"]["503"]["content"]

    async def test_every_reference_leads_to_a_model(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get("/openapi.json")
        models = answer.json()["components"]["schemas"]

        references = set(re.findall(r'"\$ref":"#/components/schemas/([^"]+)"', answer.text))

        assert references <= set(models)
        assert {"NewRun", "RunPatch", "BatchBody", "Measurements"} <= references

    async def test_bodies_are_documented(self, shared_client: httpx.AsyncClient) -> None:
        models = (await shared_client.get("/openapi.json")).json()["components"]["schemas"]

        assert models["NewRun"]["required"] == ["project"]
        assert {"project", "task", "config"} <= set(models["NewRun"]["properties"])


class TestReadReplica:
    async def test_reads_go_to_it_and_writes_do_not(self, new_database: Callable[[], str]) -> None:
        databases = {"database_url": new_database(), "database_read_url": new_database()}
        created = create_app(local_settings(**databases, allow_unsafe_database=True))
        transport = httpx.ASGITransport(created)
        async with (
            created.router.lifespan_context(created),
            httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=AS_LOCAL_USER) as client,
        ):
            run_id = await store_run(created)

            read = await client.get(f"/api/v1/runs/{run_id}")
            written = await client.patch(f"/api/v1/runs/{run_id}", json={"name": "new"})

        assert read.status_code == 404
        assert written.status_code == 200


class TestThreads:
    def test_no_request_goes_through_a_thread_to_learn_what_is_known(self) -> None:
        """FastAPI sends plain functions there: two changes of threads, which cost more than all else they do."""
        plain = {
            (route.path, needed.call.__qualname__)
            for router in ROUTERS
            for route in router.routes
            for needed in all_of(route.dependant)
            if not (iscoroutinefunction(needed.call) or isasyncgenfunction(needed.call))
        }

        assert plain == set()


def all_of(needed: Any) -> Iterator[Any]:
    """What an endpoint depends on, however far away, and the endpoint itself."""
    yield needed
    for one in needed.dependencies:
        yield from all_of(one)
