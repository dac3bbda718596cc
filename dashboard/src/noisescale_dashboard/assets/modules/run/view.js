/* The view of a run's page: from its address at first and after back and forward, later from its controls. */
import { LIMITS, RUN, RUN_SWITCHES } from "../address/address.js";
import { isMissing, same, skip, skips, triggers } from "../shell/dash.js";
import { write } from "../shell/history.js";
import { figureOf } from "../shell/figures.js";

/* The controls, in the order of the callback's inputs and, after the stores, of its outputs. */
const CONTROLS = ["x", "kind", "w", "pref", "layer", "show", "layers", "term", "part", ...RUN_SWITCHES];
const FIGURES = ["noise", "terms", "loss"];
const NUM_STORES = 4;

/** One store for each callback that reads the view, so that a moved slider does not fetch the series again. */
export function stores(before, now) {
  const pick = (view, keys) => (view ? keys.map((key) => view[key]) : null);
  const hasChanged = (keys) => !before || !same(pick(before, keys), pick(now, keys));
  const part = (keys) => (hasChanged(keys) ? Object.fromEntries(keys.map((key) => [key, now[key]])) : skip());
  const range = now.linked ? { from: now.from, to: now.to } : { from: null, to: null };
  const layers = { ...range, layers: now.layers, term: now.term };
  return [
    now,
    part(["x", "w", "from", "to", "layer", "kind", "show", ...RUN_SWITCHES]),
    part(["pref", ...LIMITS]),
    hasChanged(["from", "to", "linked", "layers", "term"]) ? layers : skip(),
  ];
}

export function runView(search, ...given) {
  const by = triggers();
  const values = given.slice(0, CONTROLS.length);
  const [view, windows] = given.slice(CONTROLS.length);
  const nothing = skips(NUM_STORES + CONTROLS.length);
  if (!window.location.pathname.startsWith("/runs/")) return nothing;
  const shown = (one) => CONTROLS.map((key) => (key === "w" ? Math.max(0, windows.indexOf(one.w)) : one[key]));
  if (!view || by.includes("address.search")) {
    const now = RUN.read(search);
    return view && same(view, now) ? nothing : [...stores(view, now), ...shown(now)];
  }
  const now = { ...view };
  CONTROLS.forEach((key, place) => {
    const value = key === "w" ? windows[values[place]] : values[place];
    now[key] = isMissing(value) ? RUN.usual[key] : value;
  });
  /* layers are measured of kind simple only: the choice made last counts */
  if (now.layer && now.kind !== RUN.usual.kind) {
    Object.assign(now, by.includes("run-layer.value") ? { kind: RUN.usual.kind } : { layer: null });
  }
  if (same(view, now)) return nothing;
  write(RUN.said(now), by.includes("run-pref.value"));
  const isShown = (value, place) => same(value, values[place] === undefined ? null : values[place]);
  return [...stores(view, now), ...shown(now).map((value, place) => (isShown(value, place) ? skip() : value))];
}

/** Steps that a zoomed range of the x axis covers, read from the points that are drawn; undefined where it is none. */
export function zoomed(relayout, figures, kind) {
  if (!relayout) return undefined;
  if (relayout["xaxis.autorange"]) return { from: null, to: null };
  const ends = relayout["xaxis.range"] || [relayout["xaxis.range[0]"], relayout["xaxis.range[1]"]];
  if (ends[0] === undefined || ends[1] === undefined) return undefined;
  const low = Math.min(ends[0], ends[1]);
  const high = Math.max(ends[0], ends[1]);
  if (kind === "step") return { from: Math.max(0, Math.floor(low)), to: Math.ceil(high) };
  const batch = figures && figureOf(figures.noise).data.find((trace) => trace.name === "batch");
  if (!batch) return undefined;
  const isInside = (x) => x !== null && x >= low && x <= high;
  const steps = batch.x
    .map((x, place) => (isInside(x) ? batch.customdata[place][2] : null))
    .filter((step) => step !== null);
  if (!steps.length) return undefined;
  return { from: Math.min(...steps), to: Math.max(...steps) };
}

/* A dragged range, apart from the controls: Dash draws whatever a callback may set once more when that begins and ends. */
export function runZoomed(...given) {
  const by = triggers();
  const relayouts = given.slice(0, FIGURES.length);
  const [view, figures] = given.slice(FIGURES.length);
  const dragged = FIGURES.find((name) => by.includes("run-" + name + ".relayoutData"));
  /* a figure that is not linked zooms alone, in the points it has; the main one asks for finer ones */
  if (!view || !dragged || (!view.linked && dragged !== "noise")) return skips(NUM_STORES);
  const kind = dragged === "loss" && view.x === "loss" ? "step" : view.x;
  const range = zoomed(relayouts[FIGURES.indexOf(dragged)], figures, kind);
  const now = { ...view, ...range };
  if (!range || same(view, now)) return skips(NUM_STORES);
  write(RUN.said(now), true);
  return stores(view, now);
}
