import assert from "node:assert/strict";
import test from "node:test";

import { changed, entries, goTo, put, SKIP, stored } from "./support/page.mjs";

const { PLANNER } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/address/address.js");
const { placeOf, plannerSliders, valueAt } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/planner/sliders.js");
const { numberOf, plannerAsked, plannerView, shownOf } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/planner/view.js");

const view = (search) => stored(PLANNER.read(search));
const SCOPE = { kind: "task", project: "p", task: "t", named: ["p", "t", null], chosen: { task: "p/t", run: "" } };

/* What the callback answers, by id and property, when "planner-<one>" has changed to a value beside what was there. */
function after(one, value, before, more = {}) {
  const given = { "planner-view.data": before, "planner-scope.data": SCOPE, ["planner-" + one]: value, ...more };
  const ids = ["view.data", "f-deadline_h.value", "f-steps.value", "spot.checked", "pref.value"].map(
    (id) => "planner-" + id,
  );
  const split = (id) => ({ id: id.slice(0, id.lastIndexOf(".")), property: id.slice(id.lastIndexOf(".") + 1) });
  Object.assign(window.dash_clientside.callback_context, {
    inputs_list: Object.entries(given).map(([id, said]) => ({ ...split(id), value: said })),
    states_list: [],
    outputs_list: ids.map(split),
  });
  goTo("/planner");
  const answer = changed(["planner-" + one], plannerView);
  return Object.fromEntries(answer.map((said, i) => [ids[i].slice("planner-".length), said]));
}

test("a slider and its value lead to each other, its last place is no limit", () => {
  const ends = [2, 2048];

  for (let place = 0; place < 100; place += 1) assert.equal(placeOf(valueAt(place, ends, "budget_usd"), ends), place);
  assert.deepEqual([placeOf(null, ends), valueAt(100, ends, "budget_usd"), placeOf(5, undefined)], [100, null, 100]);
  assert.deepEqual([placeOf(1, ends), placeOf(1e6, ends)], [0, 99]);
  assert.deepEqual(
    [1, 50].map((place) => valueAt(place, [1, 64], "devices")),
    [1, 8],
  );
});

test("a dragged slider sets the limit and replaces its entry of the history", () => {
  const answer = after("s-deadline_h.value", 0, view(""), { "planner-ranges.data": { deadline_h: [2, 200] } });

  assert.equal(answer["view.data"].deadline_h, 2);
  assert.equal(answer["f-deadline_h.value"], 2);
  assert.deepEqual(entries, ["replace /planner?deadline_h=2"]);
});

test("a deadline is read in the unit that is shown", () => {
  const answer = after("f-deadline_h.value", "3", view(""), { "planner-unit.value": "d" });

  assert.equal(answer["view.data"].deadline_h, 72);
  assert.deepEqual(entries, ["push /planner?deadline_h=72"]);
  assert.equal(after("unit.value", "min", view("deadline_h=2"))["f-deadline_h.value"], 120);
  assert.deepEqual(entries, []);
});

test("a number that is shown rounded is not a new one, and a sign alone is none", () => {
  assert.equal(numberOf("0.333333", 1, 1 / 3), 1 / 3);
  assert.equal(numberOf("0.3334", 1, 1 / 3), 0.3334);
  assert.deepEqual(
    ["", null, undefined, "-"].map((said) => numberOf(said, 1, 5)),
    [null, null, null, null],
  );
  assert.equal(numberOf("7", 1, null), 7);
});

test("all limits go with one click, what is planned stays", () => {
  const answer = after(
    "clear.n_clicks",
    1,
    view("project=p&task=t&target=0.2&y=examples&deadline_h=2&spot=1&pref=0.7"),
  );

  assert.equal(PLANNER.said(answer["view.data"]), "project=p&task=t&target=0.2&y=examples");
  assert.deepEqual([answer["f-deadline_h.value"], answer["spot.checked"], answer["pref.value"]], ["", false, 0.5]);
});

test("another task has another target and no run, the same one changes nothing", () => {
  const before = view("project=p&task=t&target=0.2&deadline_h=2");

  assert.equal(PLANNER.said(after("task.value", "a%2Fb/c", before)["view.data"]), "project=a%2Fb&task=c&deadline_h=2");
  assert.equal(after("task.value", "p/t", before)["view.data"], SKIP);
});

test("a run is planned instead of its task, and none is the task again", () => {
  assert.equal(PLANNER.said(after("run.value", "r", view("project=p&task=t"))["view.data"]), "run=r");
  assert.equal(PLANNER.said(after("target.value", "0.3", view("run=r"))["view.data"]), "run=r&target=0.3");
  const ofRun = { "planner-scope.data": { ...SCOPE, chosen: { task: "p/t", run: "r" } } };
  assert.equal(PLANNER.said(after("run.value", "", view("run=r"), ofRun)["view.data"]), "project=p&task=t");
});

test("an address fills all controls", () => {
  const shown = shownOf(view("bcrit=900&spot=1"), "h");

  assert.deepEqual([shown["planner-f-bcrit.value"], shown["planner-f-steps.value"]], [900, ""]);
  assert.deepEqual([shown["planner-spot.checked"], shown["planner-stay.checked"]], [true, false]);
});

test("a plan is asked for once it is known of what, and the scope once for each thing", () => {
  const ofTask = view("project=p&task=t");

  assert.deepEqual(changed(["planner-scope.data"], plannerAsked, ofTask, SCOPE, null), { view: ofTask, scope: SCOPE });
  assert.equal(changed([], plannerAsked, view("run=r"), SCOPE, null), SKIP);
  assert.deepEqual(put[0][1].data.named, [null, null, "r"]);
  changed([], plannerAsked, view("run=r"), SCOPE, { named: [null, null, "r"], at: Date.now() });
  assert.deepEqual(put, []);
  changed([], plannerAsked, view("bcrit=9"), SCOPE, null);
  assert.deepEqual(put[0][1].data.named, ["typed"]);
});

test("sliders stand where the view says, and each fold says how many of its fields are set", () => {
  const ranges = { deadline_h: [1, 100] };
  const answer = changed([], plannerSliders, ranges, view("deadline_h=10&worth=3&bcrit=9&steps=5"), SCOPE, []);

  assert.deepEqual(put[0], ["planner-s-deadline_h", { value: 50 }]);
  assert.deepEqual(answer.slice(1, 5), [false, true, true, true]);
  assert.deepEqual(answer.slice(-4), [" · 1 set", "", " · 2 set", true]);
});
