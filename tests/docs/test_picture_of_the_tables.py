"""docs/images/tables.svg is drawn from the classes as they are, with every table and every foreign key."""

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from sqlalchemy import Column, ForeignKey, MetaData, Table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_tables", ROOT / "docs" / "draw_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_what_the_classes_are_now(drawing: ModuleType) -> None:
    stale = "python docs/draw_tables.py draws it anew"

    assert drawing.IMAGE.read_text() == drawing.drawn(drawing.tables()), stale
    assert "images/tables.svg" in (ROOT / "docs" / "architecture.md").read_text()


def test_every_table_has_a_box_and_every_foreign_key_a_line_or_a_word(drawing: ModuleType) -> None:
    known = drawing.tables()
    picture = ElementTree.fromstring(drawing.drawn(known))
    texts = [text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    solid = [path for path in picture.iter("{http://www.w3.org/2000/svg}path") if path.get("class") == "line"]
    keys = {(table.name, key.column.table.name) for table in known.values() for key in table.foreign_keys}

    assert set(known) <= set(texts)
    said = sum(texts[-1].count(name) for name, parent in keys if f"belong to {parent}" in texts[-1])
    assert len(solid) + said == len(keys)


def test_a_table_that_the_picture_does_not_know_is_named(drawing: ModuleType) -> None:
    other = Table("novelty", MetaData(), Column("id", primary_key=True), Column("run_id", ForeignKey("run.id")))

    with pytest.raises(SystemExit, match="differ by novelty"):
        drawing.places({**drawing.tables(), "novelty": other})
