"""A run's report as a page: the document itself, without the frame of the other pages and without any script."""

from datetime import UTC, datetime

from dash import html
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import URL

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.report.document import Origin, document
from noisescale_dashboard.report.markup import to_html
from noisescale_dashboard.report.reading import read
from noisescale_dashboard.run.report_address import LAST_PART, asked_in

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; font-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
SERVER_ERROR, NO_ANSWER = 500, 502
REFUSAL_STYLE = ":root{color-scheme:light dark}body{font:15px/22px system-ui,sans-serif;margin:40px;max-width:40em}"


def register(app: FastAPI, api: ApiClient) -> None:
    """The page; it comes before Dash, which answers every other path of the browser."""

    @app.get(f"/runs/{{run_id}}/{LAST_PART}", include_in_schema=False)
    async def show_report(run_id: str, request: Request) -> HTMLResponse:
        try:
            preference, asked = asked_in(request.query_params.multi_items())
            found = await read(api, visitor_headers(request.headers), run_id, preference=preference, asked=asked)
        except ApiProblem as problem:
            return HTMLResponse(_refusal(problem, request.url), problem.status or NO_ANSWER, HEADERS)
        return HTMLResponse(document(found, _origin(request)), headers=HEADERS)


def _origin(request: Request) -> Origin:
    # a server that was started for one report says what it has read instead of where it was
    read_from: str | None = getattr(request.app.state, "read_from", None)
    now = datetime.now(UTC)
    if read_from is not None:
        return Origin(None, f"read from {read_from}, without a server", now)
    return Origin(str(request.url), "", now)


def _refusal(problem: ApiProblem, asked: URL) -> str:
    """A page that says why there is no report and what to do next, for a reader who has followed a link."""
    title, why, way_on = _said(problem, asked)
    told = html.Main([html.H1(title), html.P(why), html.P(way_on)])
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>No report – noisescale</title>'
        f"<style>{REFUSAL_STYLE}</style></head><body>{to_html(told)}</body></html>"
    )


def _said(problem: ApiProblem, asked: URL) -> tuple[str, str, html.A]:
    """What is wrong, why, and a link that leads on: the run, the server or the wish in the address."""
    if problem.is_missing:
        why = "It was deleted, the address is wrong, or it belongs to someone else."
        return "No such run", why, html.A("All runs", href="/runs")
    if problem.status is None or problem.status >= SERVER_ERROR:
        why = f"The server could not read the run: {_sentence(problem)} Training is not affected."
        return "No report at the moment", why, html.A("Try again", href=str(asked))
    why = f"The address asks for what cannot be computed: {_sentence(problem)}"
    return (
        "No report",
        why,
        html.A("The run, and what can be asked there", href=asked.path.removesuffix(f"/{LAST_PART}")),
    )


def _sentence(problem: ApiProblem) -> str:
    """What the API said, with one full stop."""
    return problem.detail.rstrip(".") + "."
