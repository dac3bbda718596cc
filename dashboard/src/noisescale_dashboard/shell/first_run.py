"""What an empty server shows: four steps to the first run, and the wait for its first step, which opens its page."""

from dash import Dash, Input, Output, ctx, dcc, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child

INSTALL = "pip install ./client      # from a checkout of noisescale"
LINES = """import noisescale

run = noisescale.init(project="vision", task="digits")
run.watch(model, optimizer)
for images, labels in loader:
    loss = loss_of(model(images), labels)
    loss.backward()
    run.log_gradients(loss=loss, batch_size=len(images))
    optimizer.step()
    optimizer.zero_grad()
run.finish()
"""
SECONDS_BETWEEN_LOOKS = 3


def layout() -> html.Section:
    """The steps, before the API has said how a job finds this server."""
    steps = [
        html.Li([html.B("Install the client"), code(INSTALL)]),
        # how a job finds this server, once the API has said it (settings/page.py)
        html.Li([html.B("Tell the job where this server is"), html.Div(id="first-connection")]),
        html.Li([html.B("Add five lines to the training"), code(LINES)]),
        html.Li([html.B("Start it"), _waiting()]),
    ]
    demo = [
        html.P("Or watch four real runs train on this machine, from a checkout:", className="t2"),
        code("make demo"),
    ]
    return html.Section(
        [html.H2("No runs yet", className="tt"), html.Ol(steps, className="steps"), *demo], className="card empty"
    )


def code(text: str) -> html.Pre:
    """Lines to copy."""
    return html.Pre(text, className="mono code", tabIndex="0")


def _waiting() -> html.Div:
    words = "Waiting for the first step… This page turns into the run's as soon as it arrives."
    clock = dcc.Interval(id="first-run-clock", interval=1000 * SECONDS_BETWEEN_LOOKS)
    return html.Div([html.Span(className="dot running"), html.Span(words), clock], className="row t2", role="status")


def register(app: Dash, api: ApiClient) -> None:
    """The look for the first run, as long as the page is open."""

    @app.callback(
        Output("address", "pathname"),
        Input("first-run-clock", "n_intervals"),
        prevent_initial_call=True,
    )
    async def open_first_run(looks: int | None) -> Child:
        if not looks:
            raise PreventUpdate
        try:
            page = await api.runs(visitor_headers(ctx.headers), {"limit": 1, "sort": "-updated_at"})
        except ApiProblem:
            # the banner of the page says so; the next look comes
            raise PreventUpdate from None
        if not page.runs or page.runs[0].last_step is None:
            raise PreventUpdate
        return f"/runs/{page.runs[0].id}"
