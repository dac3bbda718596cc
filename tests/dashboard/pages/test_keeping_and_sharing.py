"""Keeping and sharing: of a project on the page of settings, of a run on its own page."""

from dashboard_callbacks import Callbacks
from fakes_access import LINK_ADDRESS
from fakes_api import FakeApi
from noisescale_dashboard.answers.projects import Keeping
from noisescale_dashboard.run import sharing
from noisescale_dashboard.settings import keeping

FORM = {
    "settings-keeping-save.n_clicks": 1,
    "settings-defaults-project.value": "vision",
    "settings-keeping-days.value": 90,
    "settings-keeping-public.checked": True,
}
SHARE = {"run-share-hours.value": "24", "run-id.data": "00000000-0000-4000-8000-000000000001"}


async def test_the_form_shows_what_the_project_says(callbacks: Callbacks) -> None:
    shown = await callbacks.post("settings-keeping-days.value", {"settings-defaults-project.value": "vision"})

    assert shown["settings-keeping-days"]["value"] == 90
    assert shown["settings-keeping-public"] == {"checked": False, "disabled": False, "description": ""}


async def test_saving_sends_both_and_says_what_holds_then(callbacks: Callbacks, fake_api: FakeApi) -> None:
    shown = await callbacks.post("settings-keeping-said.children", FORM, headers={"Cookie": "who=ada"})

    assert fake_api.said == {
        "/api/v1/projects/vision/retention": {"fold_after_days": 90},
        "/api/v1/projects/vision/public": {"is_public": True},
    }
    assert fake_api.requests[-1].headers["cookie"] == "who=ada"
    assert "vision folds rows of runs after 90 days without data; only its people read it." in str(shown)


async def test_an_empty_field_is_never(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await callbacks.post("settings-keeping-said.children", FORM | {"settings-keeping-days.value": ""})

    assert fake_api.said["/api/v1/projects/vision/retention"] == {"fold_after_days": None}


def test_what_holds_is_said_in_words() -> None:
    assert keeping.sentence("p", Keeping(None, is_public=True, is_allowed=True)) == (
        "Saved. p keeps every row; everybody may read it."
    )


async def test_a_link_is_shown_once_with_its_end(callbacks: Callbacks, fake_api: FakeApi) -> None:
    shown = await callbacks.post("run-share-said.children", SHARE | {"run-share-make.n_clicks": 1})

    assert list(fake_api.said.values()) == [{"hours": 24}]
    assert LINK_ADDRESS in str(shown)
    assert "Whoever has it reads this run until 2026-11-27 12:00 UTC" in str(shown)


def test_how_many_links_have_ended_is_said() -> None:
    assert [sharing.ended(number) for number in (0, 1, 2)] == [
        "No link of this run was in force.",
        "1 link ended.",
        "2 links ended.",
    ]
