/* The points of a run's main figure, and which of them a place in another figure stands for. */

/** The columns of the main figure by name, all of one length; null where it has none. */
export function columnsOf(figure) {
  const meta = figure && figure.layout && figure.layout.meta;
  if (!meta || !meta.columns) return null;
  const found = {};
  meta.columns.forEach(([name, values]) => {
    if (name === "step") found.step = values;
    if (name.startsWith("noise scale (")) found.noise = values;
    if (name.startsWith("batch (")) found.batch = values;
    if (name === "training loss") found.loss = values;
  });
  const batch = figure.data.find((trace) => trace.name === "batch");
  found.x = batch ? batch.x : found.step;
  return found;
}

/** The place of the value that is nearest; -1 where all are null. */
export function nearest(values, wanted) {
  let best = -1;
  values.forEach((value, place) => {
    if (value === null) return;
    if (best < 0 || Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = place;
  });
  return best;
}

/** The step that is hovered in the figure `name`: figures over anything but steps say it through the points of the main one. */
export function stepOf(series, view, name, point) {
  const isOverSteps = name === "layers" || !view || view.x === "step" || (view.x === "loss" && name === "loss");
  if (isOverSteps) return Math.round(point.x);
  if (name === "noise" && point.customdata && Number.isFinite(point.customdata[2])) return point.customdata[2];
  const at = nearest(series.x, point.x);
  return at < 0 ? null : series.step[at];
}

/** What the main figure shows at the step that is nearest; null where there is nothing. */
export function momentAt(series, step) {
  const at = series && step !== null ? nearest(series.step, step) : -1;
  if (at < 0) return null;
  const of = (name) => (series[name] ? series[name][at] : null);
  return { step: series.step[at], x: of("x"), noise: of("noise"), batch: of("batch"), loss: of("loss") };
}
