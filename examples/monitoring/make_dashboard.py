"""Write the Grafana dashboard of a server and its live runs: `python examples/monitoring/make_dashboard.py`.

It needs `pip install grafana-foundation-sdk`. The JSON stands beside it, to be imported as it is.
"""

from pathlib import Path

from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

FILE = Path(__file__).with_name("dashboard.json")
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
NAMED = 'on(run) group_left(name, project, task) noisescale_run_info{project=~"$project"}'
"""Joins what a run is called to a figure of it."""

HEALTH = (
    ("Database", "noisescale_database_up", ""),
    ("Live runs", "noisescale_live_runs", ""),
    ("More than are shown", "noisescale_live_runs_left_out", ""),
    ("Runs waiting to be judged", 'noisescale_waiting_runs{work="decision"}', ""),
)
SERVER = (
    ("Records a second", "rate(noisescale_records_total[$__rate_interval])", "{{outcome}}", "cps"),
    (
        "Answers a second",
        "sum by (kind, status) (rate(noisescale_requests_total[$__rate_interval]))",
        "{{kind}} {{status}}",
        "reqps",
    ),
    (
        "Time of an answer, 99th percentile",
        "histogram_quantile(0.99, sum by (kind, le) (rate(noisescale_request_seconds_bucket[$__rate_interval])))",
        "{{kind}}",
        "s",
    ),
    ("Errors in the log a second", "rate(noisescale_logged_errors_total[$__rate_interval])", "{{logger}}", "cps"),
    ("The database's time for a scrape", "noisescale_database_answer_seconds", "", "s"),
    ("Connections to the database in use", "noisescale_database_connections_in_use", "", "short"),
)
RUNS = (
    ("Noise scale, examples", "noisescale_run_noise_scale_examples", "short"),
    ("Global batch, examples", "noisescale_run_batch_size_examples", "short"),
    ("Progress of an example, relative to the best", "noisescale_run_example_efficiency_ratio", "percentunit"),
    ("Expected saving of the recommended batch", "noisescale_run_expected_saving_ratio", "percentunit"),
)


def query(expression: str, legend: str = "") -> Dataquery:
    """A query over time."""
    return Dataquery().expr(expression).legend_format(legend).datasource(SOURCE).ref_id("A")


def lines(title: str, expression: str, legend: str, unit: str) -> Lines:
    """Lines over time with their names below."""
    below = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    panel = Lines().title(title).datasource(SOURCE).unit(unit).legend(below).span(12).height(8)
    return panel.with_target(query(expression, legend))


def decisions() -> Table:
    """What to do with each live run, as a table."""
    expression = f"noisescale_run_recommended_batch_size_examples * {NAMED}"
    asked = query(expression).instant().format(PromQueryFormat.TABLE)
    return Table().title("Recommended batch, examples").datasource(SOURCE).span(24).height(9).with_target(asked)


def dashboard() -> Dashboard:
    """The whole dashboard."""
    made = (
        Dashboard("noisescale").uid("noisescale").tags(["noisescale", "training"]).refresh("30s").time("now-6h", "now")
    )
    made.with_variable(DatasourceVariable("source").label("Prometheus").type("prometheus"))
    projects = QueryVariable("project").label("Project").datasource(SOURCE).include_all(True).multi(True)
    made.with_variable(projects.query("label_values(noisescale_run_info, project)").all_value(".*"))
    made.with_row(Row("Server"))
    for title, expression, legend in HEALTH:
        panel = Stat().title(title).datasource(SOURCE).span(6).height(4)
        made.with_panel(panel.with_target(query(expression, legend)))
    for title, expression, legend, unit in SERVER:
        made.with_panel(lines(title, expression, legend, unit))
    made.with_row(Row("Live runs"))
    for title, name, unit in RUNS:
        made.with_panel(lines(title, f"{name} * {NAMED}", "{{project}} {{name}}", unit))
    return made.with_panel(decisions())


def text() -> str:
    """The dashboard as JSON."""
    return JSONEncoder(sort_keys=True, indent=2).encode(dashboard().build()) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    print(f"wrote {FILE}")
