/* Live pages ask for news only while someone looks and something runs. */
import { numPending } from "./callbacks.js";
import { component, skip } from "./dash.js";
import { isLost } from "./outage.js";

const MINUTE_MS = 60000;

export function pulse(ticks, live) {
  if (!ticks || document.hidden || !live || !live.running) return skip();
  /* Dash drops the answer of a callback that is asked again: a server slower than the clock would never be heard */
  if (numPending()) return skip();
  /* of two ticks after news one is enough, and charts of an old run move too little to be drawn again with every tick */
  if (ticks - live.newsTick < 2) return skip();
  if (live.every && live.received && Date.now() - live.received < 1000 * live.every) return skip();
  /* news that nobody waits for do not dim what is shown */
  document.documentElement.dataset.quiet = "1";
  return Date.now();
}

/* what changes slowly is asked for once a minute, and once at first */
export function slowPulse(ticks, runId, last) {
  return last && Date.now() - last < MINUTE_MS ? skip() : Date.now();
}

export function liveWords(ticks, live) {
  if (!live || !live.running) return live && live.words ? live.words : "";
  const seconds = Math.max(0, Math.round((Date.now() - live.received) / 1000));
  if (isLost() || seconds > 20 + (live.every || 0)) return "live updates paused";
  return [component("Span", { className: "dot running" }), "live, " + seconds + " s ago"];
}

/* The first answer is not news that anyone waited for. */
export function received(live, ticks, before) {
  if (!live) return skip();
  const isNews = before && before.stamp !== live.stamp;
  return { ...live, received: Date.now(), newsTick: isNews ? ticks : before && before.newsTick };
}

/* What changed on a live page, said to screen readers: at most once a minute, and nothing that was there at first. */
export function announce(sentence, last) {
  if (!sentence) return [skip(), skip()];
  if (!last) return ["", { at: Date.now(), said: sentence }];
  if (sentence === last.said || Date.now() - last.at < MINUTE_MS) return [skip(), skip()];
  return [sentence, { at: Date.now(), said: sentence }];
}
