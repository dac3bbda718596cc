/* When the parts of a run's page are asked for, and what they show of what came. */
import { same, skip } from "../shell/dash.js";
import { clickedPoint } from "../shell/plots.js";

/* What stands beside the main figure is asked for once that is there: with every look, and later than it with news. */
export function besideAsked(live, view, asked, said) {
  if (!live || !live.at || !view) return [skip(), skip()];
  /* what could not be loaded is asked for again with the first answer that comes; of a run that has ended none comes later */
  const isLate = asked && live.stamp !== asked.stamp && (!live.running || Date.now() - asked.at >= 30000);
  const isNews = Boolean(asked && (isLate || String(said).startsWith("not loaded")));
  const isLook = Boolean(asked && !same(asked.view, view));
  if (asked && !isLook && !isNews) return [skip(), skip()];
  const since = isLook && !isNews ? { at: asked.at, stamp: asked.stamp } : { at: Date.now(), stamp: live.stamp };
  return [{ view, ...since }, isNews ? Date.now() : skip()];
}

/* Records are asked for after the main figure, once a minute while it has news, and again where they did not come. */
export function recordsAsked(live, asked, shown) {
  if (!live || !live.at) return skip();
  const isRecent = asked && (live.stamp === asked.stamp || (live.running && Date.now() - asked.at < 60000));
  return isRecent && shown ? skip() : { at: Date.now(), stamp: live.stamp };
}

/* Layers follow a zoomed main figure; another look at them alone waits for nothing. */
export function layersAsked(layers, live, view, asked) {
  const isAhead = view && view.linked && live && live.range && !same(live.range, [view.from, view.to]);
  return !layers || !live || isAhead || same(layers, asked) ? skip() : layers;
}

/* Which part of the page a phone shows. */
export const partShown = (part) => "part-" + (part || "figures");

export function layerClicked(click, names) {
  const point = clickedPoint(click);
  return (point && names && names[Math.round(point.y)]) || skip();
}

/* What was redundant so far, below the example efficiency. */
export const wasteLine = (waste) => [waste ? waste.words : "", waste ? waste.title : ""];
