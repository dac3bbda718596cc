/* The views of the pages of sweeps, in the address. */
import { SWEEP, SWEEPS } from "../address/address.js";
import { same, setProps, skip, skips, triggers } from "../shell/dash.js";
import { write } from "../shell/history.js";

/* What the server shows becomes the choice by set_props: as an output it would close a circle of callbacks. */
export function showTarget(shown) {
  if (!shown) return skip();
  setProps("sweep-target", { value: String(shown.target) });
  return shown.target;
}

/* The target that is shown when the address names none stays out of the address. */
export function sweepView(search, target, regimes, shown, view) {
  const first = shown ? String(shown.first) : null;
  if (!window.location.pathname.startsWith("/sweeps/")) return skips(3);
  if (!view || triggers().includes("address.search")) {
    const now = SWEEP.read(search);
    if (view && same(view, now)) return skips(3);
    return [now, now.target === null ? first || skip() : now.target, now.regimes];
  }
  if (!target) return skips(3);
  const now = { target: target === first ? null : target, regimes: regimes || SWEEP.usual.regimes };
  /* an address may write the same number in another way, or name what is shown anyway */
  if (view.target !== null && Number(view.target) === Number(target)) now.target = view.target;
  if (same(view, now)) return skips(3);
  write(SWEEP.said(now));
  return [now, skip(), skip()];
}

export function sweepsView(search, tab, view) {
  if (window.location.pathname !== "/sweeps") return skips(2);
  if (!view || triggers().includes("address.search")) {
    const now = SWEEPS.read(search);
    return view && same(view, now) ? skips(2) : [now, now.tab];
  }
  const now = {
    tab: tab || SWEEPS.usual.tab,
    workload: tab === view.tab ? view.workload : null,
    project: view.project,
  };
  if (same(view, now)) return skips(2);
  write(SWEEPS.said(now));
  return [now, skip()];
}
