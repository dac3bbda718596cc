"""A run's report: one document that says what the run's page says, and needs nothing beside itself."""

import re
from dataclasses import replace
from html import unescape

import httpx
import pytest
from dash import dcc, html

from dashboard_callbacks import Callbacks
from fakes_advice import recommendation_json
from fakes_api import FakeApi
from fakes_runs import HOSTILE, RUNS, run_json, series_json
from noisescale_dashboard.answers.advice import recommendation
from noisescale_dashboard.answers.common import run
from noisescale_dashboard.answers.series import noise_scale_series
from noisescale_dashboard.app import mount
from noisescale_dashboard.report import cautions, second_page
from noisescale_dashboard.report.markup import Markup, to_html
from noisescale_dashboard.report.reading import Reported
from noisescale_dashboard.run import limits as plan_limits
from noisescale_dashboard.run.report_address import address_of

RUN = f"/runs/{RUNS[0].id}/report"
UNRESOLVED = next(f"/runs/{run.id}/report" for run in RUNS if not run.resolved)
HOSTILE_RUN = next(f"/runs/{run.id}/report" for run in RUNS if run.name == HOSTILE)
LARGEST = 400_000
"""Bytes; the font takes 73,000 of them."""


def words(document: str) -> str:
    """What a reader sees of it, entities as characters."""
    body = document.split("<body>")[1]
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


async def test_it_answers_which_batch_with_interval_effect_and_data(client: httpx.AsyncClient) -> None:
    told = words((await client.get(RUN)).text)

    for part in (
        "Raise the batch to 1,536",
        "interval 219 – 10,800, 95 %",
        "sequences to the same loss, predicted",
        "6.0e-4 → 1.04e-3",
        "Noise scale of kind simple, tr Σ ÷ |G|², measured from 4 ranks × 2 micro-batches",
        "1,490 sequences [1,130 – 1,950, 95 %], resolved, z 5.1, 512 updates",
        "Not calibrated for this task",
        "Complete: 184,200 records stored, none lost.",
        "page 2 of 2",
    ):
        assert unspaced(part) in unspaced(told), part


def unspaced(text: str) -> str:
    return re.sub(r"[\s\u2060]+", "", text)


async def test_it_needs_no_script_and_no_other_file(client: httpx.AsyncClient) -> None:
    answer = await client.get(RUN)

    assert "<script" not in answer.text
    assert not re.search(r"""(?:\bsrc=|url\()["']?(?!data:font|#)""", answer.text)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "script-src" not in answer.headers["content-security-policy"]
    assert len(answer.content) < LARGEST


async def test_preference_and_limits_of_the_address_are_asked_and_said(
    client: httpx.AsyncClient, fake_api: FakeApi
) -> None:
    told = words((await client.get(f"{RUN}?pref=0.7&max_hours=18&num_devices=8&spot_price_share=0.4")).text)

    asked = next(request for request in fake_api.requests if request.url.path.endswith("recommendation"))
    query = {"preference": "0.7", "max_hours": "18", "num_devices": "8", "spot_price_share": "0.4"}
    assert dict(asked.query_params) == query
    assert told.count("your memory limit") == 1
    for said in ("preference 70 % towards fewer steps", "hours ≤ 18", "devices 8", "spot price share 0.4"):
        assert unspaced(said) in unspaced(told)


async def test_an_unresolved_noise_scale_is_a_bound_and_recommends_nothing(client: httpx.AsyncClient) -> None:
    told = words((await client.get(UNRESOLVED)).text)

    assert "Not enough evidence yet" in told
    assert "No batch is recommended yet, so there is nothing to compare." in told
    assert "the batch has no place on the curve yet" in told
    assert unspaced("> 344 utterances, not resolved, z 1.2") in unspaced(told)
    assert "About 9k more steps resolve it" in told


async def test_the_last_row_of_the_table_is_what_the_figure_ends_with(client: httpx.AsyncClient) -> None:
    document = (await client.get(RUN)).text

    row = re.findall(r'<tr><th scope="row">([\d,]+)</th>(.*?)</tr>', document)
    last = next(cells for step, cells in row if step == "184,199")
    value = re.findall(r"<td>(.*?)</td>", last)[1]
    assert f">{value}</tspan> noise scale" in document


def test_the_last_row_is_the_latest_window_on_which_the_first_page_rests() -> None:
    found = run(run_json(RUNS[0]))
    points = noise_scale_series(series_json(RUNS[0], points=20))
    latest = replace(points.latest, value=1234.0, low=1100.0, high=1400.0)
    series = replace(points, latest=latest)
    advised = recommendation(recommendation_json(RUNS[0], 0.5))

    told = words(
        "<body>" + "".join(map(to_html, second_page.second_page(Reported(found, advised, series, (), 0.5, {}))))
    )
    early = replace(found, last_step=(found.last_step or 0) + 100)
    earlier = words(
        "<body>" + "".join(map(to_html, second_page.second_page(Reported(early, advised, series, (), 0.5, {}))))
    )

    assert "1,100 – 1,400" in told
    assert "1,100 – 1,400" not in earlier


@pytest.mark.parametrize(
    "path", ["/runs/00000000-0000-4000-8000-0000000000ff/report", "/runs/<script>/report", "/runs/no-id/report"]
)
async def test_a_run_that_is_not_there_is_told_in_the_words_of_its_page(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert answer.status_code == 404
    told = words(answer.text)
    assert "No such run" in told
    assert "It was deleted, the address is wrong, or it belongs to someone else." in told
    assert "UUID" not in told
    assert 'href="/runs">All runs</a>' in answer.text
    assert "<script" not in answer.text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        (f"{RUN}?pref=7", 422, "pref must be a number from 0 (fewest examples) to 1 (fewest steps), got '7'"),
        (f"{RUN}?pref=nan", 422, "pref must be a number"),
        (f"{RUN}?max_hours=-1", 422, "max_hours: Input should be greater than 0"),
    ],
)
async def test_what_cannot_be_reported_says_why(client: httpx.AsyncClient, path: str, status: int, said: str) -> None:
    answer = await client.get(path)

    assert answer.status_code == status
    assert said in words(answer.text)
    assert f'href="{RUN.removesuffix("/report")}">The run, and what can be asked there</a>' in answer.text


async def test_an_api_that_fails_gives_no_half_report(client: httpx.AsyncClient, fake_api: FakeApi) -> None:
    fake_api.failing = True

    answer = await client.get(f"{RUN}?pref=0.7")

    assert answer.status_code == 503
    assert "the database does not answer" in answer.text
    assert "Training is not affected." in answer.text
    assert f'{RUN}?pref=0.7">Try again</a>' in answer.text


async def test_a_server_that_was_filled_for_one_reading_shows_its_own_data_and_says_from_what(
    fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOISESCALE_DASHBOARD_API_URL", "http://127.0.0.1:9")
    fake_api.app.state.read_from = "/data/<b>spool</b>"
    mount(fake_api.app)

    async with httpx.AsyncClient(base_url="http://x", transport=httpx.ASGITransport(app=fake_api.app)) as opened:
        answer = await opened.get(RUN)

    assert answer.status_code == 200
    assert "read from /data/&lt;b&gt;spool&lt;/b&gt;, without a server" in answer.text
    assert "http://x" not in answer.text


async def test_hostile_names_are_literal_text(client: httpx.AsyncClient) -> None:
    document = (await client.get(HOSTILE_RUN)).text

    assert "<img src=x" not in document
    assert HOSTILE in words(document)


@pytest.mark.parametrize("name", ["</title></style></script><script>alert(1)</script>", "\u202eevil", "a" * 100_000])
async def test_a_name_neither_ends_the_document_nor_turns_or_fills_it(fake_api, client, name: str) -> None:
    fake_api.runs = (replace(RUNS[0], name=name, task=name, optimizer=name, example=name),)

    answer = await client.get(RUN)

    assert answer.status_code == 200
    assert "<script" not in answer.text
    assert "\u202e" not in answer.text
    assert len(answer.content) < LARGEST


async def test_a_note_of_a_megabyte_and_a_thousand_notes_are_cut_and_counted(fake_api, client) -> None:
    notes = ["</script><img src=x onerror=alert(1)>" + "x" * 1_000_000, *(f"note {i}" for i in range(1000))]
    fake_api.runs = (replace(RUNS[0], measured={"notes": notes}),)

    document = (await client.get(RUN)).text

    assert "<img src=x" not in document
    assert "</script>&lt;img" not in document
    assert "more are not shown." in document
    assert len(document) < LARGEST


async def test_a_lost_record_is_said_on_both_pages(client: httpx.AsyncClient) -> None:
    run = next(run for run in RUNS if run.lost)

    told = words((await client.get(f"/runs/{run.id}/report")).text)

    assert told.count("12 of 56,300 records did not arrive") == 2
    assert "records 151 – 162: memory full" in told


async def test_the_links_of_a_runs_page_carry_preference_and_limits(callbacks: Callbacks) -> None:
    view = {"pref": 0.7, **dict.fromkeys(plan_limits.FIELDS), "max_hours": 18}

    changed = await callbacks.post(
        "run-advice-top.children",
        {"run-pref-view.data": view, "run-pulse.data": None, "run-id.data": RUNS[0].id, "narrow.data": False},
    )

    assert changed["run-report"]["href"] == changed["run-advice-report"]["href"] == f"{RUN}?pref=0.7&max_hours=18"
    assert address_of(RUNS[0].id, {"pref": 0.5}) == RUN


def test_a_component_that_needs_a_script_cannot_be_printed() -> None:
    with pytest.raises(ValueError, match="Graph needs a script"):
        to_html(dcc.Graph(id="x"))


def test_attributes_and_text_are_escaped_and_only_markup_of_ours_is_not() -> None:
    part = html.A(['<b>"', Markup("<svg/>")], href='"><script>', className="c", hidden=True)

    opened, inside = to_html(part).split(">", 1)
    assert inside == "&lt;b&gt;&quot;<svg/></a>"
    assert sorted(opened.split(" ")) == ["<a", 'class="c"', "hidden", 'href="&quot;&gt;&lt;script&gt;"']


@pytest.mark.parametrize(
    ("texts", "short", "num_more"),
    [
        (["All of it. " * 3, "Short."], ["All of it. " * 3, "Short."], 0),
        (["One. Two. " + "Three " * 40, "b" * 30 + ".", "c.", "d."], ["One. Two.", "b" * 30 + ".", "c."], 1),
        (["A first sentence of " + "many " * 60 + "words. x", "b.", "c.", "d."], ["b.", "c."], 2),
    ],
)
def test_the_first_page_holds_whole_sentences(
    texts: list[str], short: list[str], num_more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cautions, "told", lambda _: texts)

    assert cautions.in_short(None) == (short, num_more)  # type: ignore[arg-type]
    assert bool(cautions.in_full(None)) == (num_more > 0)  # type: ignore[arg-type]


def test_what_no_place_holds_ends_with_a_whole_word() -> None:
    assert cautions.whole_sentences("many words without an end", 12) == "many words…"
    assert cautions.whole_sentences("x" * 50, 12) == "x" * 11 + "…"


@pytest.mark.parametrize(("num_points", "taken"), [(3, 3), (44, 42), (300, 38)])
def test_the_data_fill_the_second_page(num_points: int, taken: int) -> None:
    every = second_page._every(num_points, second_page.MAX_ROWS - 2)

    assert len(range(0, num_points, every)) <= 42
    assert len(range(0, num_points, every)) >= min(num_points, taken) // 2
