"""A tree that nobody asks anything of is one component; what callbacks could need cannot be put into it."""

import json

import pytest
from dash import dcc, html
from plotly.io.json import to_json_plotly

from noisescale_dashboard.shell.parts import card
from noisescale_dashboard.shell.still import Still


def test_a_tree_reaches_the_browser_as_one_component_with_all_its_elements() -> None:
    told = json.loads(to_json_plotly(Still([html.P(["noise ", html.B("1,490")], className="t2")])))

    assert (told["namespace"], told["type"]) == ("noisescale_dashboard", "Still")
    (paragraph,) = json.loads(told["props"]["json"])
    assert (paragraph["type"], paragraph["props"]["className"]) == ("P", "t2")
    assert paragraph["props"]["children"][1]["props"]["children"] == "1,490"


def test_a_card_with_its_menu_may_stand_in_another_tree() -> None:
    told = to_json_plotly(Still(card("Records", "as stored", "none", card_id="run-ledger-card", has_table=True)))

    assert told.count('"type":"Still"') == 1
    assert told.count(r"\"type\":\"Still\"") == 1


@pytest.mark.parametrize("tree", [dcc.Store(id="a"), html.Div([html.P(dcc.Graph())]), [html.P("a"), dcc.Store(id="b")]])
def test_what_is_more_than_an_element_is_refused(tree: object) -> None:
    with pytest.raises(TypeError, match="more than an element of HTML"):
        Still(tree)  # type: ignore[arg-type]  # what a page may give by mistake
