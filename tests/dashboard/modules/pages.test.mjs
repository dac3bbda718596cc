import assert from "node:assert/strict";
import test from "node:test";

import { changed, entries, goTo, put, SKIP, stored } from "./support/page.mjs";

const { COMPARE, LIMITS, OVERVIEW, RUN, SWEEP } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/address/address.js");
const { compareView, compareTab } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/compare/view.js");
const { overviewView, openClicked } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/overview/view.js");
const { limitsApplied, limitsShown } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/run/limits.js");
const { runView, runZoomed, zoomed } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/run/view.js");
const { showTarget, sweepsView, sweepView } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/sweeps/view.js");

const isSkipped = (answer) => answer.every((one) => one === SKIP);

/* -- a run -- */

const WINDOWS = ["auto", "100", "2000"];
const CONTROLS = ["step", "simple", 0, 0.5, null, "terms", "map", "noise", "figures", true, true, false];
const ofRun = (search) => stored(RUN.read(search));
const onRun = (ids, place, value, view = ofRun("")) =>
  changed(ids, runView, "", ...CONTROLS.map((one, i) => (i === place ? value : one)), view, WINDOWS);

test("the page of a run shows what its address says", () => {
  goTo("/runs/1");
  const answer = changed([], runView, "?x=time&w=2000&linked=0", ...CONTROLS, null, WINDOWS);

  assert.deepEqual(answer.slice(4, 7), ["time", "simple", 2]);
  assert.deepEqual([answer[13], answer[0].w, answer[3].from], [false, "2000", null]);
});

test("a moved preference replaces its entry and asks for the recommendation alone", () => {
  goTo("/runs/1");
  const [view, series, pref, layers] = onRun(["run-pref.value"], 3, 0.75);

  assert.deepEqual(entries, ["replace /runs/1?pref=0.75"]);
  assert.deepEqual([view.pref, pref.pref, series, layers], [0.75, 0.75, SKIP, SKIP]);
});

test("of layer and kind the choice made last counts", () => {
  goTo("/runs/1");
  assert.equal(onRun(["run-kind.value"], 1, "adam", ofRun("layer=fc1"))[0].layer, null);

  goTo("/runs/1");
  const [view, ...others] = onRun(["run-layer.value"], 4, "fc1", ofRun("kind=adam"));
  assert.deepEqual([view.kind, view.layer, others[4]], ["simple", "fc1", SKIP]);
});

const drag = (view, name, relayout) => {
  const relayouts = ["noise", "terms", "loss"].map((one) => (one === name ? relayout : null));
  return changed(["run-" + name + ".relayoutData"], runZoomed, ...relayouts, view, null);
};

test("a dragged figure zooms all that are linked, and one that is not zooms alone", () => {
  const range = { "xaxis.range[0]": 20.4, "xaxis.range[1]": 9.6 };
  goTo("/runs/1");
  const [view] = drag(ofRun(""), "terms", range);
  assert.deepEqual([view.from, view.to, entries], [9, 21, ["replace /runs/1?from=9&to=21"]]);

  assert.ok(isSkipped(drag(ofRun("linked=0"), "terms", range)));
  assert.equal(drag(ofRun("linked=0"), "noise", range)[0].from, 9);
  assert.equal(drag(ofRun("from=1&to=2"), "noise", { "xaxis.autorange": true })[0].to, null);
});

test("a range over hours or loss is that of the steps whose points lie in it", () => {
  const batch = {
    name: "batch",
    x: [1, null, 3, 4],
    customdata: [
      [0, 0, 10],
      [0, 0, 20],
      [0, 0, 30],
      [0, 0, 40],
    ],
  };
  const figures = { noise: { json: JSON.stringify({ data: [batch] }) } };

  assert.deepEqual(zoomed({ "xaxis.range": [0.5, 3.5] }, figures, "time"), { from: 10, to: 30 });
  assert.equal(zoomed({ "xaxis.range": [8, 9] }, figures, "time"), undefined);
  assert.equal(zoomed({ "yaxis.range": [8, 9] }, figures, "time"), undefined);
});

test("limits stand in fields and address alike, and go with one click", () => {
  const view = ofRun("max_hours=2&fixed_hardware=1"),
    at = LIMITS.indexOf("max_hours");
  const shown = limitsShown(view),
    fields = shown.slice(0, LIMITS.length);
  assert.deepEqual([shown[at], shown[LIMITS.indexOf("fixed_hardware")], shown[0]], [2, true, ""]);
  assert.deepEqual(shown.slice(-3), [true, " · 2 set", true]);

  goTo("/runs/1");
  changed(["run-limits-apply.n_clicks"], limitsApplied, 1, 0, ...fields, ofRun(""));
  assert.deepEqual(entries, ["push /runs/1?fixed_hardware=1&max_hours=2"]);
  changed(["run-limits-clear.n_clicks"], limitsApplied, 1, 1, ...fields, view);
  assert.deepEqual(entries, ["push /runs/1"]);
});

/* -- overview, sweeps, comparison -- */

test("a choice on the overview stands in its address", () => {
  goTo("/");
  const [view] = changed(["overview-scope.value"], overviewView, "", "7d", "0.5", stored(OVERVIEW.usual));

  assert.deepEqual([view.scope, entries], ["7d", ["push /?scope=7d"]]);
});

test("a click on a run in a figure opens it, one beside it does not", () => {
  window.scrollTo = () => {};
  const click = (points) => {
    entries.length = 0;
    window.dash_clientside.callback_context.triggered = [{ prop_id: "overview-misfit.clickData", value: { points } }];
    openClicked();
    return entries[0];
  };

  assert.equal(click([{ customdata: ["a b"] }]), "push /runs/a%20b");
  assert.equal(click([{}]), undefined);
});

test("the target that a sweep shows at first stays out of its address, and the same number is not written anew", () => {
  const view = (search) => stored(SWEEP.read(search)),
    shown = { first: 0.5, target: 0.5 };
  goTo("/sweeps/1");
  changed(["sweep-target.value"], sweepView, "", "0.3", "fit", shown, view(""));
  assert.deepEqual(entries, ["push /sweeps/1?target=0.3"]);
  goTo("/sweeps/1?target=0.3");
  changed(["sweep-target.value"], sweepView, "", "0.5", "fit", shown, view("target=0.3"));
  assert.deepEqual(entries, ["push /sweeps/1"]);
  assert.ok(isSkipped(changed(["sweep-target.value"], sweepView, "", "0.3", "fit", shown, view("target=0.30"))));

  assert.equal(changed([], showTarget, shown), 0.5);
  assert.deepEqual(put, [["sweep-target", { value: "0.5" }]]);
});

test("the workload of published sweeps goes with their tab", () => {
  goTo("/sweeps");
  const [view] = changed(["sweeps-tab.value"], sweepsView, "", "own", {
    tab: "published",
    workload: "bert",
    project: "p",
  });

  assert.deepEqual(view, { tab: "own", workload: null, project: "p" });
});

const compare = (ids, { pick = null, of = null, base = null, view }) =>
  changed(ids, compareView, "", "runs", "step", "noise", pick, of, false, base, view);

test("a run that is made the base comes first and keeps its colour", () => {
  goTo("/compare?runs=a,b");
  const view = stored(COMPARE.read("?runs=a,b")),
    [first, second] = view.colors;
  const [now, , , , moved, , , base] = compare(["compare-base.value"], { base: "b", view });

  assert.deepEqual([now.runs, now.colors, moved, base], [["b", "a"], [second, first], ["b", "a"], null]);
  assert.equal(compare(["compare-pick.value"], { pick: ["b"], view })[0].colors[0], second);
});

test("the address says which run was made the base, until that run is taken out", () => {
  goTo("/compare?runs=a,b");
  const view = stored(COMPARE.read("?runs=a,b"));
  assert.equal(view.base, null);

  const [now] = compare(["compare-base.value"], { base: "b", view });
  assert.deepEqual([now.base, COMPARE.read("?runs=b,a&base=b").base], ["b", "b"]);
  assert.match(entries[entries.length - 1], /base=b/);
  assert.equal(compare(["compare-pick.value"], { pick: ["b", "a", "c"], view: now })[0].base, "b");
  assert.equal(compare(["compare-pick.value"], { pick: ["a"], view: now })[0].base, null);
});

test("a task is compared under its project, and one part shows at a time", () => {
  goTo("/compare");
  const view = stored(COMPARE.read("tab=runs"));

  assert.equal(compare(["compare-of.value"], { of: '["p","t"]', view })[0].task, "t");
  assert.deepEqual(compareTab({ tab: "config" }), [true, false, true]);
  assert.deepEqual(compareTab(null), [true, true, true]);
});
