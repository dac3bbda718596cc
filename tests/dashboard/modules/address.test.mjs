import assert from "node:assert/strict";
import test from "node:test";

import "./support/page.mjs";

const { CHOSEN, COMPARE, COST, joined, OVERVIEW, PLANNER, RUN, RUNS, split, SWEEP, SWEEPS } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/address/address.js");
const { numberOf } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/address/fields.js");
const { namedSlots, SLOTS, slotsOf } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/address/slots.js");

const PAGES = { OVERVIEW, RUNS, RUN, SWEEP, SWEEPS, PLANNER, COMPARE, COST };
const VIEWS = {
  OVERVIEW: "scope=7d&pref=0.8&project=a%2Fb",
  RUNS:
    "q=small+run&project=p&task=t&group=optimizer&status=running&decision=keep_for_now&tag=x&since=any&shelf=archived" +
    "&where=config.lr+%3C+0.1&trials=hide&open=s%3Aabc&cols=task%2Cconfig.seed&sort=noise&batch_min=8&batch_max=0.5&noise_min=1&noise_max=2000000&view=mine",
  RUN:
    "x=loss&w=2000&from=0&to=90&layer=blocks.0&pref=0.25&show=efficiency&layers=rank&term=trace_cov&part=data" +
    "&linked=0&envelope=0&outside=1&examples_per_step=64&fixed_hardware=1&max_hours=2.5",
  SWEEP: "target=0.50&regimes=slopes",
  SWEEPS: "tab=published&workload=bert&project=p",
  COST: "tab=own&metric=accuracy&target=0.9&goal=max&spot=0.3",
  PLANNER: "project=p&task=t&run=r&target=0.2&pref=0.75&y=device_hours&deadline_h=12&devices=8&bcrit=900&stay=1&spot=1",
  COMPARE: "runs=a%2Cb&colors=31&x=time&y=batch&project=p&task=t&size=config.width&same=1",
};

for (const [name, page] of Object.entries(PAGES)) {
  test("the address of " + name + " says a whole view, and the view says the address", () => {
    assert.equal(page.said(page.read("?" + VIEWS[name])), VIEWS[name]);
    assert.equal(page.said(JSON.parse(JSON.stringify(page.read(VIEWS[name])))), VIEWS[name]);
  });

  test("a view of " + name + " that is as usual leaves the address empty", () => {
    assert.equal(page.said(page.read("")), "");
    assert.equal(page.said(page.read(null)), "");
    if (page.usual) assert.deepEqual(page.read(""), page.usual);
  });

  test("words that are none do not reach the view of " + name, () => {
    const keys = [...new URLSearchParams(VIEWS[name]).keys()];
    const free = [
      "q",
      "project",
      "task",
      "group",
      "status",
      "tag",
      "where",
      "open",
      "cols",
      "sort",
      "view",
      "layer",
      "run",
      "workload",
      "metric",
      "runs",
      "size",
    ];
    const wrong = keys.filter((key) => !free.includes(key)).map((key) => key + "=none-of-these");

    assert.equal(page.said(page.read("?unknown=1&" + wrong.join("&"))).replace(/(linked|envelope)=0&?/g, ""), "");
  });
}

test("an empty word is no number: not 0", () => {
  assert.deepEqual([null, "", "0", "1e3", "x", "Infinity"].map(numberOf), [null, null, 0, 1000, null, null]);
  assert.equal(RUN.read("from=&max_hours=").from, null);
});

test("a preference stays between 0 and 1", () => {
  assert.deepEqual(
    ["-1", "0", "0.3", "7", "x"].map((word) => RUN.read("pref=" + word).pref),
    [0, 0, 0.3, 1, 0.5],
  );
});

test("a layer is shown of the kind simple alone", () => {
  assert.equal(RUN.read("layer=fc1").layer, "fc1");
  assert.equal(RUN.read("layer=fc1&kind=adam").layer, null);
});

test("names of columns may hold commas and percent signs", () => {
  const names = ["task", "a,b", "50%", "%2C"];

  assert.deepEqual(split(joined(names)), names);
  assert.deepEqual([joined(null), split("")], ["", []]);
});

test("chosen runs stand beside the view, and leave it as it is", () => {
  assert.deepEqual(CHOSEN.read("?q=a&sel=1,2,"), ["1", "2"]);
  assert.equal(CHOSEN.said("?sel=9&q=a+b", ["1", "2"]), "q=a+b&sel=1,2");
  assert.equal(CHOSEN.said("?sel=9", []), "");
});

test("runs are compared once each, and as tasks where there is none", () => {
  const view = COMPARE.read("runs=a, b,,a");

  assert.deepEqual([view.runs, view.tab], [["a", "b"], "runs"]);
  assert.equal(COMPARE.read("").tab, "tasks");
  assert.equal(COMPARE.said({ ...view, tab: "tasks" }), "tab=tasks&runs=a%2Cb");
});

test("each of five runs has a colour of its own, the sixth has none", () => {
  const slots = slotsOf(["a", "b", "c", "d", "e", "f"], {});

  assert.deepEqual([...slots.slice(0, SLOTS)].sort(), [0, 1, 2, 3, 4]);
  assert.equal(slots[SLOTS], null);
});

test("a run keeps the colour that it had, whichever the others are", () => {
  assert.deepEqual(slotsOf(["x", "b"], { b: 3 })[1], 3);
  assert.notEqual(slotsOf(["b", "x"], { b: 3 })[1], 3);
});

test("of the colours in an address those count that exist, once each", () => {
  assert.deepEqual(namedSlots(["a", "b", "c", "d", "e"], "11-9"), { a: 1 });
});
