import assert from "node:assert/strict";
import test from "node:test";

import { changed, entries, goTo, SKIP, stored } from "./support/page.mjs";

const { COST } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/address/address.js");
const { costView } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/cost/view.js");

const isSkipped = (answer) => answer.every((one) => one === SKIP);

const costOf = (search) => stored(COST.read(search));

test("the page of time and cost shows its address, and a tab writes itself into it", () => {
  goTo("/cost");
  const shown = changed([], costView, "?tab=own&target=0.9&goal=max", null, null, null, null, null, null, null, null);
  assert.deepEqual(shown.slice(1), ["own", "", 0.9, "max", "", ""]);

  goTo("/cost");
  changed(["cost-tab.value"], costView, "", "SQuAD", null, "", "", "min", "", "", costOf(""));
  assert.deepEqual(entries, ["push /cost?tab=SQuAD"]);
});

test("what is typed about a target counts once it is shown", () => {
  goTo("/cost");
  const typed = ["?tab=own", "own", 1, "accuracy", 0.9, "max", "", 0.3];
  assert.ok(isSkipped(changed(["cost-tab.value"], costView, ...typed, costOf("?tab=own"))));

  const [view] = changed(["cost-show.n_clicks"], costView, ...typed, costOf("?tab=own"));
  assert.deepEqual([view.metric, view.target, view.price, view.spot], ["accuracy", 0.9, null, 0.3]);
  assert.deepEqual(entries, ["push /cost?tab=own&metric=accuracy&target=0.9&goal=max&spot=0.3"]);
});
