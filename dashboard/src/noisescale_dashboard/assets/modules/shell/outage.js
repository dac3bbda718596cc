/* When the server or its database is gone: a banner that says until when the page was true, and recovery by itself.
   Every answer of a callback says in a header whether the API answered it; while nothing else asks, a beat does. */
import { setProps } from "./dash.js";

const HEADER = "X-Noisescale-Api";
const IDLE_MS = 15000;
const LOST_MS = 2000;
const RECOVERY_MS = 5000;
/* what makes a page ask again, by the first part of its address, of a single thing and of a list */
const PULSES = {
  "": "overview-pulse",
  runs: "runs-pulse",
  "runs/": "run-pulse",
  compare: "compare-pulse",
  "sweeps/": "sweep-pulse",
};
let heardAt = 0;
let beatAt = 0;
let lostAt = 0;
let hasMissed = false;
let recoveredAt = 0;
let waiting = 0;

/** Whether the server does not answer. */
export const isLost = () => lostAt > 0;

/** What makes the page of this path ask again; undefined where it does not ask by itself. */
export function pulseOf(path) {
  const parts = path.split("/").filter(Boolean);
  return PULSES[(parts[0] || "") + (parts.length > 1 ? "/" : "")];
}

const clock = (ms) => new Date(ms).toTimeString().slice(0, 8);
const hasFailedCard = () => document.querySelector(".card.failed") !== null;

/* of a page without any data nothing is shown until a moment */
function words() {
  if (!heardAt || hasFailedCard()) {
    return "The server does not answer. The page loads by itself as soon as it does.";
  }
  const until = clock(heardAt);
  return "Live updates paused. Shown: data until " + until + ". They go on by themselves; training is not affected.";
}

function show() {
  const banner = document.getElementById("outage");
  if (!banner) return;
  document.body.classList.toggle("is-paused", isLost());
  banner.hidden = !isLost();
  const said = document.getElementById("outage-words");
  const now = isLost() ? words() : "";
  if (said.textContent !== now) said.textContent = now;
}

function lose(isBeat) {
  lostAt = lostAt || Date.now();
  hasMissed = hasMissed || !isBeat;
  show();
}

function hear() {
  heardAt = Date.now();
  if (!isLost()) return;
  lostAt = 0;
  show();
  recoverSoon();
}

/* where one thing alone fails, all others recover at once: without a pause the page would ask without end */
function recoverSoon() {
  const rest = recoveredAt + RECOVERY_MS - Date.now();
  window.clearTimeout(waiting);
  if (rest > 0) {
    waiting = window.setTimeout(() => {
      if (!isLost()) recoverSoon();
    }, rest);
  } else {
    recoveredAt = Date.now();
    recover();
  }
}

/* a page that shows no data yet, or that does not ask by itself, is loaded again: its address holds its view */
function recover() {
  const pulse = pulseOf(window.location.pathname);
  const missed = hasMissed;
  hasMissed = false;
  if (hasFailedCard() || (missed && !pulse)) window.location.reload();
  else if (pulse) setProps(pulse, { data: Date.now() });
}

/** Hear what an answer of a callback says of the API. */
export function hearAnswer(response, isBeat) {
  const said = response.headers.get(HEADER);
  if (response.status >= 500 || said === "down") lose(isBeat);
  else if (said === "up") hear();
}

/** Hear that a callback got no answer; one that Dash itself has dropped says nothing. */
export function hearFailure(error, isBeat) {
  if (!error || error.name !== "AbortError") lose(isBeat);
}

/** Ask for a sign of life whenever nothing else has asked for a while. */
export function keepBeating() {
  beatAt = Date.now();
  window.setInterval(() => {
    if (document.hidden || !document.getElementById("outage")) return;
    const now = Date.now();
    const last = isLost() ? beatAt : Math.max(beatAt, heardAt);
    if (isLost()) show();
    if (now - last < (isLost() ? LOST_MS : IDLE_MS)) return;
    beatAt = now;
    setProps("beat", { data: now });
  }, 500);
}
