"""The page of settings: who one is, keys, members and the log."""

from datetime import UTC, datetime

import pytest

from dashboard_callbacks import Callbacks
from fakes_access import ADA, LOGIN_LINK, ME, MOMENT, NEW_KEY, PEOPLE
from fakes_api import FakeApi
from noisescale_dashboard.answers.access import AuditEntry, Me
from noisescale_dashboard.app import page_at
from noisescale_dashboard.serving.settings import DashboardSettings
from noisescale_dashboard.settings import page as settings
from noisescale_dashboard.settings import people

VIEWING = frozenset({"identity", "read", "cursor"})
MEMBERS = frozenset({"append", "change", "own_keys"})
EVERYTHING = VIEWING | MEMBERS | {"delete", "manage"}
MANAGER = {"makes_keys": True, "manages": True, "is_local": False}


def me(**changes: object) -> Me:
    known = {
        "mode": "team",
        "name": "Ada",
        "url": None,
        "everywhere": frozenset(),
        "projects": (),
        "makes_keys": False,
        "manages": False,
    }
    return Me(**{**known, **changes})


def test_the_page_is_at_its_address() -> None:
    assert "settings-keys" in str(page_at("/settings", narrow=False, settings=DashboardSettings()))


@pytest.mark.parametrize(
    ("who", "words"),
    [
        (me(mode="local"), "for you alone"),
        (me(everywhere=EVERYTHING), "You are Ada and may do everything, in every project."),
        (me(projects=(("vision", VIEWING),)), "You are Ada, who may read in vision."),
        (me(projects=(("vision", VIEWING | MEMBERS),)), "You are Ada, who may read, write and make keys in vision."),
        (me(projects=(("vision", frozenset({"identity", "append", "cursor"})),)), "may write, and read back only how"),
        (me(projects=(("vision", frozenset({"identity", "cursor"})),)), "may read back only how far its own records"),
        (me(projects=(("vision", frozenset({"identity"})),)), "may do nothing in vision"),
        (me(), "Ask an admin for a role"),
    ],
)
def test_the_first_sentence_says_who_one_is_and_what_one_may(who: Me, words: str) -> None:
    assert words in settings.sentence(who)


async def test_a_page_without_runs_says_how_a_job_finds_this_server(callbacks: Callbacks) -> None:
    shown = await callbacks.post("first-connection.children", {"first-connection.id": "first-connection"})

    assert "NOISESCALE_URL=https://" in str(shown["first-connection"])


def test_a_job_beside_a_local_server_needs_no_address() -> None:
    said = str(settings.connection(me(mode="local")))

    assert "need nothing" in said
    assert "NOISESCALE_URL" not in said


async def test_an_admin_sees_keys_members_and_the_log(callbacks: Callbacks) -> None:
    shown = await callbacks.post("settings-sentence.children", {"settings-sentence.id": "settings-sentence"})
    keys = await callbacks.post("settings-keys.children", {"settings-me.data": MANAGER})
    people = await callbacks.post("settings-people.children", {"settings-me.data": MANAGER})

    assert [shown[f"settings-{part}-card"]["hidden"] for part in ("keys", "people", "audit")] == [False] * 3
    assert "nightly job" in str(keys["settings-keys"])
    assert [one["value"] for one in keys["settings-key-chosen"]["data"]] == ["0123456789"]
    assert "admin of all projects" in str(people["settings-people"])
    assert "key created" in str(people["settings-audit"])


async def test_a_new_key_is_shown_once_and_with_the_visitors_own_login(callbacks: Callbacks, fake_api: FakeApi) -> None:
    values = {
        "settings-key-make.n_clicks": 1,
        "settings-key-name.value": "job",
        "settings-key-scope.value": "write",
        "settings-key-projects.value": [],
        "settings-key-days.value": 30,
    }

    made = await callbacks.post("settings-key-said.children", values, headers={"Cookie": "who=ada"})

    assert NEW_KEY["key"] in str(made)
    assert fake_api.requests[-1].headers["cookie"] == "who=ada"


async def test_a_key_without_a_purpose_is_not_made(callbacks: Callbacks, fake_api: FakeApi) -> None:
    said = await callbacks.post("settings-key-said.children", {"settings-key-make.n_clicks": 1})

    assert "Say what the key is for" in str(said)
    assert "/api/v1/keys" not in fake_api.paths()


async def test_a_role_is_set_for_the_chosen_person(callbacks: Callbacks, fake_api: FakeApi) -> None:
    values = {
        "settings-role-set.n_clicks": 1,
        "settings-person.value": ADA,
        "settings-person-project.value": "a/b",
        "settings-person-role.value": "member",
    }

    said = await callbacks.post("settings-person-said.children", values)

    assert "Saved" in str(said)
    assert fake_api.requests[-1].url.path.endswith(f"/members/{ADA}")


async def test_somebody_new_is_added_and_chosen(callbacks: Callbacks, fake_api: FakeApi) -> None:
    values = {"settings-newcomer-add.n_clicks": 1, "settings-newcomer-name.value": "Grace Hopper"}

    said = await callbacks.post(callbacks.output_called_by("settings-newcomer-add"), values)

    assert "Grace Hopper is added" in str(said)
    assert said["settings-person"] == {"value": ADA}
    sent = await fake_api.requests[-1].json()
    assert sent == {"name": "Grace Hopper", "email": None, "is_administrator": False}


async def test_a_login_link_is_shown_once(callbacks: Callbacks) -> None:
    values = {"settings-link-make.n_clicks": 1, "settings-person.value": ADA}

    said = await callbacks.post(callbacks.output_called_by("settings-link-make"), values)

    assert LOGIN_LINK in str(said)


@pytest.mark.parametrize(
    ("button", "words"),
    [
        ("settings-newcomer-add", "Name the person"),
        ("settings-link-make", "Choose a person"),
        ("settings-person-disable", "Choose a person"),
    ],
)
async def test_nothing_is_done_about_nobody(callbacks: Callbacks, fake_api: FakeApi, button: str, words: str) -> None:
    said = await callbacks.post(callbacks.output_called_by(button), {f"{button}.n_clicks": 1})

    assert words in str(said)
    assert not any("people" in path for path in fake_api.paths())


@pytest.mark.parametrize(
    ("everywhere", "is_hidden"), [(sorted(EVERYTHING), False), (sorted(VIEWING | MEMBERS), True), ([], True)]
)
async def test_only_an_admin_of_all_projects_sees_logins(
    callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch, everywhere: list[str], is_hidden: bool
) -> None:
    monkeypatch.setitem(ME, "everywhere", everywhere)

    shown = await callbacks.post("settings-sentence.children", {"settings-sentence.id": "settings-sentence"})

    assert shown["settings-logins"] == {"hidden": is_hidden}


@pytest.mark.parametrize(
    ("button", "sent", "words"),
    [
        ("disable", {"is_disabled": True}, "keys are refused"),
        ("enable", {"is_disabled": False}, "log in again"),
        ("promote", {"is_administrator": True}, "An admin of all projects"),
        ("demote", {"is_administrator": False}, "Admin rights removed"),
    ],
)
async def test_what_somebody_is_changes_by_the_button_that_was_pressed(
    callbacks: Callbacks, fake_api: FakeApi, button: str, sent: dict[str, bool], words: str
) -> None:
    values = {f"settings-person-{button}.n_clicks": 1, "settings-person.value": ADA}
    output = callbacks.output_called_by("settings-person-disable")
    payload = callbacks.payload(output, values, triggered=f"settings-person-{button}.n_clicks")

    said = await callbacks.client.post("/_dash-update-component", json=payload)

    assert words in said.text
    assert fake_api.requests[-1].method == "PATCH"
    assert fake_api.requests[-1].url.path.endswith(f"/people/{ADA}")
    assert await fake_api.requests[-1].json() == sent


async def test_who_is_disabled_is_shown_as_that(callbacks: Callbacks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEOPLE[0], "disabled_at", MOMENT)

    people = await callbacks.post("settings-people.children", {"settings-me.data": MANAGER})

    assert "disabled: cannot log in" in str(people["settings-people"])
    assert "admin of all projects" not in str(people["settings-people"])


def test_an_entry_of_the_log_links_its_run_and_shortens_other_ids() -> None:
    run, comment = "1acbf597-40b5-4292-aea4-c1b9d101b1df", "28d5104d-8b92-4e86-8aad-07c0bf504217"
    details = (("run", run), ("comment", comment), ("author", "Ada"))

    said = str(people.details_of(AuditEntry(datetime(2026, 11, 26, tzinfo=UTC), "Ada", "comment added", details)))

    assert f"href='/runs/{run}'" in said
    assert f"title='{comment}'" in said
    assert "'28d5104d'" in said
    assert "'Ada'" in said
