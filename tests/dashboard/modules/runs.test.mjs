import assert from "node:assert/strict";
import test from "node:test";

import { changed, entries, goTo, SKIP, stored } from "./support/page.mjs";

const MODULES = "../../../dashboard/src/noisescale_dashboard/assets/modules/";
const { RUNS } = await import(MODULES + "address/address.js");
const { compareView } = await import(MODULES + "compare/view.js");
const { overviewView } = await import(MODULES + "overview/view.js");
const { runView } = await import(MODULES + "run/view.js");
const { keepView, linkedViews, openSavedView, savedViews } = await import(MODULES + "runs/saved-views.js");
const { selectionAddressed } = await import(MODULES + "runs/chosen.js");
const { addCondition, runsView } = await import(MODULES + "runs/view.js");
const { findRun } = await import(MODULES + "shell/find.js");
const { carry, go, leave } = await import(MODULES + "shell/history.js");
const { projectSwitch } = await import(MODULES + "shell/project.js");
const { teamViewDone, teamViewWanted } = await import(MODULES + "shell/team-views.js");
const { sweepsView, sweepView } = await import(MODULES + "sweeps/view.js");

const isSkipped = (answer) => answer.every((one) => one === SKIP);

/* -- the list of runs -- */

const LIST = ["", null, null, null, null, "", "90d", "current", "fold", [], [], "-misfit", "", "", "", ""];
const listOf = (search) => stored({ ...RUNS.read(search), page: 0 });
const inList = (ids, values, { search = "", sort = "-misfit", row, view = listOf(""), cursors = [null] } = {}) =>
  changed(ids, runsView, search, ...values, sort, row, 0, 0, view, cursors);
const withValue = (place, value) => LIST.map((one, i) => (i === place ? value : one));

test("the list of runs shows what its address says, and says nothing back", () => {
  goTo("/runs");
  const [view, q, , , , , , since, , trials, where, cols, order, least] = inList([], LIST, {
    search: "?q=a&since=7d&trials=hide&where=config.lr+%3C+1,config.a%252Cb+%3D+2&cols=task&batch_min=8&sort=noise",
    view: null,
  });

  assert.deepEqual([q, since, trials, cols, order, least], ["a", "7d", "hide", ["task"], "noise", 8]);
  assert.deepEqual(where, ["config.lr < 1", "config.a,b = 2"]);
  assert.deepEqual([view.q, view.batch_min, view.page, entries], ["a", 8, 0, []]);
});

test("a choice in the list makes an entry of the history, a letter replaces one", () => {
  goTo("/runs");
  inList(["runs-since.value"], withValue(6, "7d"));
  assert.deepEqual(entries, ["push /runs?since=7d"]);

  goTo("/runs");
  inList(["runs-q.value"], withValue(0, "a"));
  assert.deepEqual(entries, ["replace /runs?q=a"]);
});

test("pages of the list end where its cursors do, and stay out of the address", () => {
  goTo("/runs");
  const turn = (id, page) => inList([id], LIST, { view: { ...listOf(""), page }, cursors: [null, "a", "b"] })[0].page;

  assert.deepEqual([turn("runs-next.n_clicks", 1), turn("runs-next.n_clicks", 2)], [2, 2]);
  assert.deepEqual([turn("runs-previous.n_clicks", 1), turn("runs-previous.n_clicks", 0)], [0, 0]);
  assert.deepEqual(entries, []);
});

test("another filter begins at the first page, another order is told to its control", () => {
  goTo("/runs");
  const view = { ...listOf(""), page: 2 };
  assert.equal(inList(["runs-since.value"], withValue(6, "7d"), { view })[0].page, 0);

  goTo("/runs");
  const answer = inList(["runs-sort.data"], LIST, { sort: "noise" });
  assert.deepEqual([answer[0].sort, answer[12], entries], ["noise", "noise", ["push /runs?sort=noise"]]);
});

test("a click unfolds a row on its page, another folds it, and another order of groups folds all", () => {
  goTo("/runs");
  const view = { ...listOf(""), page: 2 };
  const opened = inList(["runs-toggled.data"], LIST, { row: { key: "s:1,2" }, view })[0];
  assert.deepEqual([opened.open, opened.page, entries], ["s:1%2C2", 2, ["push /runs?open=s%3A1%252C2"]]);

  const closed = inList(["runs-toggled.data"], LIST, { row: { key: "s:1,2" }, view: opened })[0];
  assert.equal(closed.open, "");
  assert.equal(inList(["runs-group.value"], withValue(2, "task"), { view: opened })[0].open, "");
  assert.equal(inList(["runs-sort.data"], LIST, { sort: "loss", view: opened })[0].open, "s:1%2C2");
});

test("the project of the list is that of the switch, whatever its own controls say", () => {
  goTo("/runs?project=p");
  const now = inList(["runs-since.value"], withValue(6, "7d"), { view: listOf("project=p") })[0];

  assert.deepEqual([now.project, entries], ["p", ["push /runs?project=p&since=7d"]]);
});

test("a condition joins those that are set, once, and a field that looks like one is quoted", () => {
  const add = (field, by, value, have) =>
    changed(["runs-where-add.n_clicks"], addCondition, 1, 0, field, by, value, have);

  assert.deepEqual(add("config.lr", "<", "0.1", ["task = a"]), [["task = a", "config.lr < 0.1"], ""]);
  assert.deepEqual(add("config.lr", "<", "0.1", ["config.lr < 0.1"])[0], ["config.lr < 0.1"]);
  assert.deepEqual(add("config.a=b", "=", "x", null)[0], ['"config.a=b" = x']);
  assert.ok(isSkipped(add("", "=", "1", [])));
  assert.ok(isSkipped(add("config.lr", "=", "  ", [])));
});

test("no view answers on another page than its own", () => {
  goTo("/settings");

  assert.ok(isSkipped(inList([], LIST)));
  assert.ok(isSkipped(changed([], overviewView, "", null, null, null)));
  assert.ok(isSkipped(changed([], sweepView, "", null, null, null, null)));
  assert.ok(isSkipped(changed([], sweepsView, "", null, null)));
  assert.ok(isSkipped(changed([], compareView, "", null, null, null, null, null, null, null, null)));
  assert.ok(isSkipped(changed([], runView, "", ...Array(14).fill(null))));
});

test("a saved view is shown as chosen where the list asks the same, whatever the address calls it", () => {
  const views = [{ name: "mine", query: "q=a&since=7d" }];

  assert.deepEqual(savedViews(views, listOf("q=a&since=7d&view=other")), [["mine"], "mine", false]);
  assert.deepEqual(savedViews(views, listOf("q=b")), [["mine"], null, true]);
  assert.deepEqual(savedViews(null, null), [[], null, true]);
});

test("what the list shows is kept under a name, the oldest of thirty-one goes", () => {
  goTo("/runs?q=a&view=old&sel=1");
  const many = Array.from({ length: 30 }, (_, i) => ({ name: "view " + i, query: "" }));
  const kept = changed(["runs-save.n_clicks"], keepView, 1, 0, 0, " mine ", null, many);

  assert.deepEqual(kept.at(-1), { name: "mine", query: "q=a" });
  assert.deepEqual([kept.length, kept[0].name], [30, "view 1"]);
  assert.equal(changed(["runs-save.n_clicks"], keepView, 1, 0, 0, "  ", null, many), SKIP);
  assert.equal(changed(["runs-forget.n_clicks"], keepView, 1, 0, 1, "", "view 3", many).length, 29);
});

test("a saved view is opened once, and linked under its name", () => {
  const views = [{ name: "a&b", query: "q=a" }];
  goTo("/runs");
  changed([], openSavedView, "a&b", views);
  assert.deepEqual(entries, ["push /runs?q=a&view=a%26b"]);
  changed([], openSavedView, "a&b", views);
  assert.deepEqual(entries, []);

  assert.equal(linkedViews(views)[1].props.href, "/runs?q=a&view=a%26b");
});

test("chosen runs are written without an entry of the history, at most twenty", () => {
  goTo("/runs?q=a");
  const rows = Array.from({ length: 25 }, (_, id) => ({ id }));

  assert.equal(changed([], selectionAddressed, rows).length, 20);
  assert.equal(entries[0].slice(0, 33), "replace /runs?q=a&sel=0,1,2,3,4,5");
});

test("a run is found by a part of its name, whenever it sent data", () => {
  goTo("/planner");

  assert.equal(changed([], findRun, 1, " a b "), "");
  assert.deepEqual(entries, ["push /runs?q=a+b&since=any"]);
  assert.equal(changed([], findRun, 0, "a"), SKIP);
});

/* -- the project of all pages -- */

test("a link carries the project of this page, unless it names one or leads elsewhere", () => {
  goTo("/runs?q=a&project=a%2Fb");

  assert.equal(carry("/"), "/?project=a%2Fb");
  assert.equal(carry("/learn#how-sure"), "/learn?project=a%2Fb#how-sure");
  assert.equal(carry("/runs/1?x=time"), "/runs/1?x=time&project=a%2Fb");
  ["/runs?project=other", "/exports/runs.csv?q=a", "/login", "https://example.com/"].forEach((url) =>
    assert.equal(carry(url), url),
  );
  goTo("/learn");
  assert.equal(carry("/runs"), "/runs");
});

test("going to a page carries the project, and leaving with the switch does not", () => {
  entries.length = 0;
  goTo("/?project=p");
  go("/runs?q=a");
  leave("/runs", null);

  assert.deepEqual(entries, ["push /runs?q=a&project=p", "push /runs"]);
});

test("the switch shows the project of the address, and writes another into it", () => {
  goTo("/runs?project=p&q=a&open=s%3A1&sel=1");
  assert.equal(changed(["address.search"], projectSwitch, "", ""), "p");

  assert.equal(changed(["project.value"], projectSwitch, "", "other"), SKIP);
  assert.deepEqual(entries, ["push /runs?q=a&project=other"]);

  goTo("/runs/1?x=time&project=p");
  changed(["project.value"], projectSwitch, "", "");
  assert.deepEqual(entries, ["push /runs"]);

  goTo("/learn?project=p");
  changed(["project.value"], projectSwitch, "", "q");
  assert.deepEqual(entries, ["push /learn?project=q"]);
});

/* -- views that a team shares -- */

const share = (name, done) => changed(["team-views-share.n_clicks"], teamViewWanted, 1, 0, 0, name, done);

test("what is shared is the view of the page, without what is the reader's own", () => {
  goTo("/runs?q=a&project=p&sel=1,2&view=mine");
  const { at, ...wanted } = share(" Small ");

  assert.deepEqual(wanted, { do: "add", name: "Small", page: "runs", query: "q=a" });
  assert.ok(at > 0);
  assert.equal(share("  "), SKIP);
});

test("undoing asks for what was done, and a page of no list shares nothing", () => {
  const done = { words: "Deleted.", undo: { do: "add", name: "a", page: "runs", query: "" }, is_done: true };
  const { at, ...again } = changed(["team-views-undo.n_clicks"], teamViewWanted, 0, 0, 1, "", done);

  assert.deepEqual(again, done.undo);
  assert.ok(at > 0);
  goTo("/learn");
  assert.equal(share("a"), SKIP);
});

test("what became of a change is said; the form is free again once it was done", () => {
  assert.deepEqual(teamViewDone({ words: "Shared.", is_done: true }), ["Shared.", true, "", "Share"]);
  assert.deepEqual(teamViewDone({ words: "Not done.", undo: null }).slice(0, 2), ["Not done.", true]);
  assert.ok(isSkipped(teamViewDone(null)));
});
