import assert from "node:assert/strict";
import test from "node:test";

import { changed, elements, goTo, put, SKIP } from "./support/page.mjs";

const asked = [];
let answer = () => Promise.reject(new Error("no answer"));
window.fetch = (resource) => {
  asked.push(resource);
  return answer();
};

const { besideAsked, layersAsked, recordsAsked } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/run/asked.js");
const { numPending, watchCallbacks } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/shell/callbacks.js");
const { announce, liveWords, pulse, received, slowPulse } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/shell/live.js");
const { renewLogin } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/shell/login.js");
const { hearAnswer, hearFailure, isLost, pulseOf } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/shell/outage.js");

const running = { running: true, every: 0 };
const isNow = (value) => Math.abs(value - Date.now()) < 1000;
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("of two ticks after news one asks, and each after an answer without", () => {
  const first = received({ ...running, stamp: "a" }, 1, undefined);
  const news = received({ ...running, stamp: "b" }, 2, first);
  const nothing = received({ ...running, stamp: "b" }, 4, news);
  const asks = [
    [2, first],
    [3, news],
    [4, news],
    [5, nothing],
  ].map((given) => typeof pulse(...given) === "number");

  assert.deepEqual(asks, [true, false, true, true]);
});

test("nothing is asked for a run that has ended, on a page that nobody sees, or before an old run has moved", () => {
  assert.equal(pulse(5, { running: false }), SKIP);
  assert.equal(pulse(5, { ...running, every: 60, received: Date.now() - 59000 }), SKIP);
  assert.ok(isNow(pulse(5, { ...running, every: 60, received: Date.now() - 61000 })));
  document.hidden = true;
  assert.equal(pulse(5, running), SKIP);
  document.hidden = false;
});

test("no news are asked for while a callback waits, a beat is no such callback", async () => {
  const heard = [];
  let arrive;
  answer = () => new Promise((resolve) => (arrive = resolve));
  watchCallbacks({ answered: (response, isBeat) => heard.push([response, isBeat]), failed: () => {} });

  window.fetch("/_dash-update-component", { body: '{"output":"run-live.data"}' });
  assert.deepEqual([numPending(), pulse(5, running)], [1, SKIP]);
  arrive("an answer");
  await settled();
  assert.deepEqual([numPending(), heard], [0, [["an answer", false]]]);

  window.fetch(new Request("http://localhost/_dash-update-component"), { body: '{"output":"beat-answer.data"' });
  window.fetch("/assets/fonts/inter.woff2");
  assert.deepEqual([numPending(), asked.length], [0, 3]);
});

test("a failed callback waits no longer, and is told of", async () => {
  const failures = [];
  answer = () => Promise.reject(new Error("gone"));
  watchCallbacks({ answered: () => {}, failed: (error) => failures.push(error.message) });

  await assert.rejects(window.fetch("/_dash-update-component", {}));
  await settled();
  assert.deepEqual([numPending(), failures], [0, ["gone"]]);
});

test("the page says when the server is gone, and asks again when it is back", () => {
  const banner = (elements.outage = { hidden: true });
  const words = (elements["outage-words"] = { textContent: "" });
  const says = (api) => ({ status: 200, headers: new Headers({ "X-Noisescale-Api": api }) });
  goTo("/runs/1");
  put.length = 0;

  hearFailure(Object.assign(new Error(), { name: "AbortError" }), false);
  assert.equal(isLost(), false);
  hearAnswer(says("down"), true);
  assert.deepEqual(
    [isLost(), banner.hidden, words.textContent.slice(0, 26)],
    [true, false, "The server does not answer"],
  );
  assert.equal(liveWords(1, { running: true, received: Date.now() }), "live updates paused");
  hearAnswer(says("up"), true);
  assert.deepEqual([isLost(), banner.hidden, put[0][0]], [false, true, "run-pulse"]);
});

test("each page has its own pulse, some have none", () => {
  const pulses = ["/", "/runs", "/runs/1", "/sweeps/1", "/sweeps", "/planner"].map(pulseOf);

  assert.deepEqual(pulses, ["overview-pulse", "runs-pulse", "run-pulse", "sweep-pulse", undefined, undefined]);
});

test("a login that has ended is renewed, and leads back to the view", () => {
  const visited = [];
  window.location.assign = (url) => visited.push(url);
  goTo("/runs?q=a b");

  renewLogin({ status: 200 });
  renewLogin({ status: 401 });
  assert.deepEqual(visited, ["/login?next=%2Fruns%3Fq%3Da%20b"]);
});

test("what is heard of a live page: its first sentence, then at most one a minute, each once", () => {
  assert.deepEqual(announce("", null), [SKIP, SKIP]);
  assert.equal(announce("first", null)[0], "");
  assert.deepEqual(announce("second", { at: Date.now() - 59000, said: "first" }), [SKIP, SKIP]);
  assert.equal(announce("second", { at: Date.now() - 61000, said: "first" })[0], "second");
  assert.deepEqual(announce("second", { at: 0, said: "second" }), [SKIP, SKIP]);
});

test("what changes slowly is asked for at first and once a minute", () => {
  assert.ok(isNow(slowPulse(1, "id", null)));
  assert.equal(slowPulse(1, "id", Date.now() - 59000), SKIP);
  assert.ok(isNow(slowPulse(1, "id", Date.now() - 61000)));
});

test("live words count the seconds, and say when they are too many", () => {
  assert.equal(liveWords(1, { running: true, received: Date.now() - 3000 })[1], "live, 3 s ago");
  assert.equal(liveWords(1, { running: true, every: 10, received: Date.now() - 31000 }), "live updates paused");
  assert.deepEqual([liveWords(1, { words: "finished" }), liveWords(1, null)], ["finished", ""]);
});

const beside = (live, view, before, said = "") => changed([], besideAsked, { at: 1, ...live }, view, before, said);

test("what stands beside the main figure is asked for with each look, with the last news, and again where it failed", () => {
  const recent = { view: "a", at: Date.now(), stamp: "1" };

  assert.equal(beside({ stamp: "1" }, "a", null)[0].stamp, "1");
  assert.deepEqual(beside({ stamp: "2", running: true }, "a", recent), [SKIP, SKIP]);
  assert.equal(beside({ stamp: "2", running: true }, "a", { ...recent, at: Date.now() - 31000 })[0].stamp, "2");
  assert.equal(beside({ stamp: "2", running: false }, "a", recent)[0].stamp, "2");
  assert.deepEqual(beside({ stamp: "1", running: true }, "b", recent), [{ ...recent, view: "b" }, SKIP]);
  assert.ok(isNow(beside({ stamp: "1", running: true }, "a", recent, "not loaded: 503")[1]));
});

test("records are asked for once a minute while there is news, and where they did not come", () => {
  const recent = { at: Date.now(), stamp: "1" };

  assert.equal(recordsAsked(null, null, null), SKIP);
  assert.equal(recordsAsked({ at: 1, stamp: "2", running: true }, recent, "table"), SKIP);
  assert.equal(recordsAsked({ at: 1, stamp: "2", running: false }, recent, "table").stamp, "2");
  assert.equal(recordsAsked({ at: 1, stamp: "1" }, recent, null).stamp, "1");
});

test("layers wait for the main figure where they are linked to it", () => {
  const layers = { layers: "map" },
    view = { linked: true, from: 1, to: 2 };

  assert.equal(layersAsked(layers, { range: [0, 9] }, view, null), SKIP);
  assert.equal(layersAsked(layers, { range: [1, 2] }, view, null), layers);
  assert.equal(layersAsked(layers, { range: [0, 9] }, { ...view, linked: false }, null), layers);
  assert.equal(layersAsked(layers, { range: [1, 2] }, view, { layers: "map" }), SKIP);
});
