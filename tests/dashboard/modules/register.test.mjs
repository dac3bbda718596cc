import assert from "node:assert/strict";
import test from "node:test";

import "./support/page.mjs";

window.fetch = () => {};
window.dashAgGridFunctions = { ofOthers: 1 };
const before = { ...window };
const dash = window.dash_clientside;

await import("../../../dashboard/src/noisescale_dashboard/assets/modules/main.js");

test("only what Dash, its table and its components look for is on the window, and the fetch that tells of callbacks", () => {
  const names = Object.keys(window).filter((name) => window[name] !== before[name]);

  assert.deepEqual(names.sort(), ["dashAgGridComponentFunctions", "fetch", "noisescale_dashboard"]);
  assert.deepEqual(
    Object.keys(dash).filter((name) => name === "noisescale" || dash[name] === undefined),
    ["noisescale"],
  );
});

test("what others have registered stays, in the same object", () => {
  assert.equal(window.dash_clientside, dash);
  assert.deepEqual(Object.keys(window.dashAgGridFunctions), ["ofOthers", "keepOrder", "reportSort"]);
});

test("cells and component are named as the table and Python name them", () => {
  const cells = [
    "Batch",
    "Decision",
    "Efficiency",
    "Fit",
    "Loss",
    "More",
    "NoiseScale",
    "RunLine",
    "RunName",
    "Spark",
    "Step",
  ];

  assert.deepEqual(Object.keys(window.dashAgGridComponentFunctions).sort(), cells);
  assert.deepEqual(Object.keys(window.noisescale_dashboard), ["Still"]);
});
