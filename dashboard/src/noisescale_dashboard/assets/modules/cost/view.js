/* The view of the page of time and cost, in the address. */
import { COST } from "../address/address.js";
import { same, skip, skips, triggers } from "../shell/dash.js";
import { write } from "../shell/history.js";

const FIELDS = ["metric", "target", "goal", "price", "spot"];
const shown = (view) => [view.metric || "", view.target ?? "", view.goal, view.price ?? "", view.spot ?? ""];
const numbered = (value) => (value === "" || value === null || value === undefined ? null : Number(value));

/** A tab is a choice at once; fields count when they are shown. */
export function costView(search, tab, clicks, metric, target, goal, price, spot, view) {
  if (window.location.pathname !== "/cost") return skips(2 + FIELDS.length);
  if (!view || triggers().includes("address.search")) {
    const now = COST.read(search);
    return view && same(view, now) ? skips(2 + FIELDS.length) : [now, now.tab, ...shown(now)];
  }
  const typed = triggers().includes("cost-show.n_clicks")
    ? { metric: metric || null, target: numbered(target), goal, price: numbered(price), spot: numbered(spot) }
    : {};
  const now = { ...view, ...typed, tab: tab || COST.usual.tab };
  if (same(view, now)) return skips(2 + FIELDS.length);
  write(COST.said(now));
  return [now, skip(), ...skips(FIELDS.length)];
}
