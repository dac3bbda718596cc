/* The view of the page that compares, in the address. */
import { COMPARE, COMPARE_TABS } from "../address/address.js";
import { slotsOf } from "../address/slots.js";
import { same, setProps, skip, skips, triggers } from "../shell/dash.js";
import { write } from "../shell/history.js";

const ofValue = (view) => (view.project && view.task ? JSON.stringify([view.project, view.task]) : null);

/* Other runs, each of those that stay in its colour. */
function withRuns(view, runs) {
  const had = {};
  view.runs.forEach((id, place) => {
    if (view.colors[place] !== null) had[id] = view.colors[place];
  });
  const base = runs.includes(view.base) ? view.base : null;
  return { ...view, runs, colors: slotsOf(runs, had), base };
}

function ofTask(view, of) {
  const [project, task] = of ? JSON.parse(of) : [null, null];
  return { ...view, project, task };
}

export function compareView(search, tab, x, y, pick, of, isSame, base, view) {
  const by = triggers();
  if (window.location.pathname !== "/compare") return skips(8);
  if (!view || by.includes("address.search")) {
    const now = COMPARE.read(search);
    if (view && same(view, now)) return skips(8);
    return [now, now.tab, now.x, now.y, now.runs, ofValue(now), now.same, null];
  }
  const isOfBase = by.includes("compare-base.value");
  let now = { ...view, tab: tab || view.tab, x: x || view.x, y: y || view.y, same: Boolean(isSame) };
  if (by.includes("compare-of.value")) now = ofTask(now, of);
  if (by.includes("compare-pick.value")) now = withRuns(now, pick || []);
  if (isOfBase && base && view.runs.includes(base)) {
    now = { ...withRuns(now, [base].concat(view.runs.filter((id) => id !== base))), base };
  }
  if (same(view, now)) return skips(8);
  write(COMPARE.said(now));
  const moved = isOfBase && !same(now.runs, view.runs) ? now.runs : skip();
  return [now, skip(), skip(), skip(), moved, skip(), skip(), base ? null : skip()];
}

/* Runs of a name come from the server, once the reader pauses: only the newest are offered at first. */
const PAUSE_MS = 250;
let typing = 0;

export function compareSearch(text) {
  window.clearTimeout(typing);
  const ask = () => setProps("compare-searched", { data: (text || "").trim() || null });
  typing = window.setTimeout(ask, PAUSE_MS);
  return skip();
}

/* Which part shows is known before its data are. */
export const compareTab = (view) => COMPARE_TABS.map((tab) => (view ? tab !== view.tab : true));
