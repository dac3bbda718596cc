/* The view of the overview, in the address; a click on a run in its figures opens that run. */
import { OVERVIEW } from "../address/address.js";
import { context, same, skip, skips, triggers } from "../shell/dash.js";
import { go, write } from "../shell/history.js";
import { clickedPoint } from "../shell/plots.js";

export function overviewView(search, scope, pref, view) {
  if (window.location.pathname !== "/") return skips(3);
  if (!view || triggers().includes("address.search")) {
    const now = OVERVIEW.read(search);
    return view && same(view, now) ? skips(3) : [now, now.scope, now.pref];
  }
  const usual = OVERVIEW.usual;
  const now = { scope: scope || usual.scope, pref: pref || usual.pref, project: view.project };
  if (same(view, now)) return skips(3);
  write(OVERVIEW.said(now));
  return [now, ...skips(2)];
}

export function openClicked() {
  const [by] = context().triggered;
  const point = clickedPoint(by && by.value);
  if (!point || !point.customdata) return skip();
  go("/runs/" + encodeURIComponent(point.customdata[0]));
  window.scrollTo(0, 0);
  return skip();
}
