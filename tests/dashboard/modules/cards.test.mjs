import assert from "node:assert/strict";
import test from "node:test";

import { goTo, SKIP } from "./support/page.mjs";

const { csvCell, csvOf, jsonOf, rowsOf, shownCell } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/card/data.js");
const { slugOf } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/card/parts.js");
const { plain } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/card/picture.js");
const { RunName } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/runs/cells.js");
const { pathsOf, sparklinesKept, sparklinesWanted, stretches, withSparklines } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/runs/sparklines.js");
const { Still } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/shell/still.js");

const columns = [
  ["step", [1, 2]],
  ["noise scale", [0.5, null]],
];
const card = {
  querySelector: (part) =>
    part === ".js-plotly-plot" ? { layout: { meta: { columns } } } : { textContent: " " + part },
};

test("the data of a card are its figure's columns as rows, names first", () => {
  assert.deepEqual(rowsOf(card), [
    ["step", "noise scale"],
    [1, 0.5],
    [2, null],
  ]);
  assert.equal(csvOf(rowsOf(card)), "step,noise scale\r\n1,0.5\r\n2,\r\n");
});

test("data without a figure are the table as it is written", () => {
  const row = { cells: [{ innerText: " a\n b " }, { innerText: "1" }] };

  assert.deepEqual(rowsOf({ querySelector: () => null, querySelectorAll: () => [row] }), [["a b", "1"]]);
});

test("a spreadsheet runs nothing that someone has called a layer, and reads negative numbers", () => {
  assert.equal(csvCell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  assert.equal(csvCell('@a, "b"'), '"\'@a, ""b"""');
  assert.deepEqual(["-1.5", "+2", -3, null, true].map(csvCell), ["-1.5", "+2", "-3", "", "true"]);
});

test("a file of JSON says what it is of", () => {
  goTo("/runs/1");
  window.location.href = "http://localhost/runs/1";
  const said = JSON.parse(jsonOf(card));

  assert.deepEqual(
    [said.title, said.address, said.columns],
    [".tt", "http://localhost/runs/1", { step: [1, 2], "noise scale": [0.5, null] }],
  );
});

test("numbers are shown with five digits", () => {
  assert.deepEqual([123456.7, 0.000123456, null, false, "a"].map(shownCell), ["123,460", "0.00012346", "–", "no", "a"]);
});

test("a file is named in plain letters", () => {
  assert.equal(slugOf("Noise scale B_noise, é/ü!"), "noise-scale-b-noise-e-u");
  assert.equal(slugOf("a".repeat(90)).length, 80);
});

test("a title in a picture is neither markup nor a formula", () => {
  assert.equal(plain("<b>&$x$"), "&lt;b&gt;&amp;$\u2060x$\u2060");
});

test("the name of a run is text, whatever is in it", () => {
  const name = "<img src=x onerror=alert(1)>";
  const link = RunName({ data: { id: "a/b", name, tags: [], status: "crashed", statusWords: "" } }).children[1]
    .children[0];

  assert.deepEqual([link.props.href, link.children], ["/runs/a%2Fb", [name, null]]);
});

test("a pinned run bears a mark with its word, and no other one does", () => {
  const row = { id: "a", name: "b2048", tags: [], status: "finished", statusWords: "" };
  const markOf = (data) => RunName({ data }).children[1].children[0].children[1];

  assert.match(markOf({ ...row, baseline: true }).props["aria-label"], /^Baseline/);
  assert.equal(markOf({ ...row, baseline: false }), null);
});

test("what stays as it is is drawn as one tree, one inside another too", () => {
  const inner = { type: "Still", props: { json: JSON.stringify({ type: "B", props: { children: 0 } }) } };
  const drawn = Still({ json: JSON.stringify({ type: "Div", props: { id: "a", children: ["text", null, inner] } }) });

  assert.deepEqual([drawn.type, drawn.props.id, drawn.children.slice(0, 2)], ["div", "a", ["text", null]]);
  assert.deepEqual([drawn.children[2].type, drawn.children[2].children], ["b", [0]]);
});

test("the line of a sparkline never crosses a gap", () => {
  assert.deepEqual(stretches([1, 2, null, 4]), [[0, 1], [3]]);
  const spark = { y: [1, null, 3], low: [0, 1, 2], high: [2, null, 3], batch: [1, 1, 3], min: 0, max: 4 };
  const paths = pathsOf(spark, 24, 26);

  assert.equal(paths.noise, "M2.0,18.0h.1M22.0,8.0h.1");
  assert.equal(paths.bound, "M12.0,18.0h.1");
  assert.equal(paths.batch, "M2.0,18.0H12.0V18.0H22.0V8.0");
});

test("sparklines are asked for in turns, and only for runs with news", () => {
  const rows = [
    { id: "old", stamp: "1" },
    { id: "news", stamp: "2" },
    { id: "unknown", stamp: "1" },
  ];
  const sparks = { old: { stamp: "1", spark: "a" }, news: { stamp: "1", spark: "b" }, gone: { stamp: "1" } };
  const many = Array.from({ length: 90 }, (_, i) => ({ id: "run " + i, stamp: "1" }));

  assert.deepEqual(sparklinesWanted(rows, sparks), { news: "2", unknown: "1" });
  assert.equal(sparklinesWanted(rows.slice(0, 1), sparks), SKIP);
  assert.equal(Object.keys(sparklinesWanted(many, {})).length, 16);
  assert.deepEqual(Object.keys(sparklinesKept({ unknown: {} }, sparks, rows)), ["old", "news", "unknown"]);
  assert.deepEqual(
    withSparklines(rows, sparks).map((row) => row.spark),
    ["a", "b", null],
  );
});
