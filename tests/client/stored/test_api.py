"""Questions to the REST API: names with slashes arrive whole, and whatever else answers is one sentence."""

import pytest

from noisescale.stored.api import Api, Refused, path_of, with_values
from noisescale.stored.finding import NotFound, as_id, find_run, in_address
from noisescale.transport.upload.answers import Answer

RUN_ID = "7d1f0c9e-2222-4333-8444-555566667777"
OTHER_ID = "7d1f0c9f-2222-4333-8444-555566667777"


class Answering:
    """Stands in for `HttpServer`: answers by path, and keeps what was asked."""

    url = "http://server"

    def __init__(self, **answers: Answer) -> None:
        self.asked: list[str] = []
        self._answers = answers

    def request(self, method, path, body=None):
        self.asked.append(f"{method} {path}")
        return self._answers["page" if "?" in path else "run"]


def run(name, run_id=RUN_ID):
    return {"id": run_id, "name": name}


def api_of(*runs, **answers):
    server = Answering(page=Answer(200, {"runs": list(runs)}), run=Answer(200, {"id": "found"}), **answers)
    return Api(server), server.asked


def test_each_part_of_a_path_is_quoted_and_a_list_repeats_its_name():
    assert path_of("projects", "a/b c", "tasks") == "/projects/a%2Fb%20c/tasks"
    assert (
        with_values("/runs", {"q": None, "status": ["a", "b"], "archived": True})
        == "/runs?status=a&status=b&archived=true"
    )
    assert with_values("/runs", {"q": None}) == "/runs"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(404, {"type": "/errors/run-not-found", "detail": "no run has it"}), "no run has it"),
        (Answer(404, {"type": "/errors/run-not-found", "title": "Gone"}), "Gone"),
        (
            Answer(422, {"type": "/errors/invalid", "detail": "wrong", "errors": [{"field": "a", "message": "is b"}]}),
            "wrong (a: is b)",
        ),
        (
            Answer(
                422, {"type": "/errors/invalid", "detail": "a: is b", "errors": [{"field": "a", "message": "is b"}]}
            ),
            "a: is b",
        ),
        (Answer(502, {}), "what answers at http://server is no noisescale server, or a proxy before it (status 502)"),
        (Answer(403, {"message": "log in"}), "what answers at http://server is no noisescale server"),
        (Answer(200, {}), "what answers at http://server is no noisescale server"),
    ],
)
def test_a_refusal_is_the_servers_sentence_and_what_is_not_the_servers_says_so(answer, sentence):
    server = Answering(run=answer)

    with pytest.raises(Refused) as refused:
        Api(server).get("/runs")

    assert str(refused.value).startswith(sentence)
    assert refused.value.status == answer.status


def test_the_json_of_another_program_is_a_sentence_where_it_is_read():
    server = Answering(page=Answer(200, {"message": "welcome"}))

    with pytest.raises(Refused, match="http://server answers without 'runs': it is no noisescale server"):
        find_run(Api(server), "a")


@pytest.mark.parametrize(
    "said", [RUN_ID, RUN_ID.upper(), RUN_ID.replace("-", ""), f"https://host/runs/{RUN_ID}/report?x=1"]
)
def test_a_whole_id_is_asked_for_as_it_is(said):
    api, asked = api_of()

    find_run(api, said)

    assert asked == [f"GET /api/v1/runs/{RUN_ID}"]


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ("a", [run("a"), run("ab", OTHER_ID)]),
        ("A", [run("ab"), run("ba", OTHER_ID)]),
        ("7d1f0c9e", [run("x"), run("not 7d1f0c9e", OTHER_ID)]),
    ],
)
def test_the_exact_name_counts_first_and_then_the_beginning_of_name_or_id(said, runs):
    api, asked = api_of(*runs)

    assert find_run(api, said) == {"id": "found"}
    assert asked[1:] == [f"GET /api/v1/runs/{RUN_ID}"]


def test_a_name_that_is_in_many_others_is_found_behind_them():
    pages = [
        Answer(200, {"runs": [run("ba", OTHER_ID)], "next_cursor": "c"}),
        Answer(200, {"runs": [run("a")], "next_cursor": None}),
    ]
    server = Answering(run=Answer(200, {"id": "found"}))
    server.request = lambda method, path, body=None: (
        server.asked.append(path) or (pages.pop(0) if "?" in path else Answer(200, {"id": "found"}))
    )

    assert find_run(Api(server), "a") == {"id": "found"}
    assert server.asked[1:] == ["/api/v1/runs?q=a&limit=500&cursor=c", f"/api/v1/runs/{RUN_ID}"]


def test_two_runs_of_the_same_name_are_told_apart_by_their_ids():
    api, _ = api_of(run("a"), run("a", OTHER_ID))

    with pytest.raises(
        NotFound, match=f"2 runs are called 'a': give the id of one, a \\({RUN_ID}\\), a \\({OTHER_ID}\\)"
    ):
        find_run(api, "a")


def test_a_project_is_asked_for_and_named():
    api, asked = api_of()

    with pytest.raises(
        NotFound, match="no run is called 'a' in project 'p', and none's name or id begins so: `noisescale runs`"
    ):
        find_run(api, "a", project="p")

    assert asked == ["GET /api/v1/runs?q=a&project=p&limit=500"]


def test_of_many_that_are_near_a_few_are_named():
    api, _ = api_of(*(run(f"xa{i}") for i in range(9)))

    with pytest.raises(NotFound, match="and 3 more"):
        find_run(api, "a")


def test_what_is_no_address_and_no_id_stays_a_name():
    assert in_address("runs/1") == "runs/1"
    assert in_address("http://host/tasks/7") == "http://host/tasks/7"
    assert as_id("digits") is None


@pytest.mark.parametrize("said", ["http://[/runs/x", "https://[::1/runs/", "//[/runs/"])
def test_what_only_looks_like_an_address_is_a_name(said):
    assert in_address(said) == said
