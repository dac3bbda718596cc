/* The marks of a moment in the figures of a run's page. */
import { element } from "../shell/page.js";
import { axisOf, drawnPoints, hoverModeOf, isDrawn, isOn, lengthOf, pixelOf, plotIn, startOf } from "../shell/plots.js";

export const OVER_TRAINING = ["noise", "terms", "loss"];
export const plotOf = (name) => plotIn("run-" + name);
export const said = (step) => "step " + step.toLocaleString("en-US");
export const clearMarks = () => document.querySelectorAll(".moment").forEach((old) => old.remove());

function mark(plot, className, style, words) {
  const made = element("span", "moment " + className);
  Object.assign(made.style, style);
  if (words) made.dataset.words = words;
  made.setAttribute("aria-hidden", "true");
  plot.appendChild(made);
}

function line(plot, value, words) {
  const x = axisOf(plot, "x");
  const y = axisOf(plot, "y");
  const left = value === null ? NaN : pixelOf(x, value);
  if (!Number.isFinite(left) || !isOn(x, left)) return;
  mark(plot, "line", { left: left + "px", top: startOf(y) + "px", height: lengthOf(y) + "px" }, words);
}

const isNumber = (value) => value !== null && Number.isFinite(value);

function dot(name, x, y, words) {
  const plot = plotOf(name);
  if (!isDrawn(plot) || !isNumber(x) || !isNumber(y)) return;
  const across = axisOf(plot, "x");
  const up = axisOf(plot, "y");
  const left = pixelOf(across, x);
  const top = pixelOf(up, y);
  if (!isOn(across, left) || !isOn(up, top)) return;
  const isFarRight = left > startOf(across) + 0.6 * lengthOf(across);
  mark(plot, isFarRight ? "dot left" : "dot", { left: left + "px", top: top + "px" }, words);
}

/* The box of a step goes to a corner of the half that the step is not in, where fewer points are under it: beside the step
   it would cover the curve. Plotly places it anew with every move, so that its place is a rule of the style sheet. */
const EDGE = 6;

const isUnder = (at, box) => at.x >= box.left && at.x <= box.right && at.y >= box.top && at.y <= box.bottom;

function cornersFor(plot, x, size) {
  const [across, up] = [axisOf(plot, "x"), axisOf(plot, "y")];
  const isRight = pixelOf(across, x) > startOf(across) + lengthOf(across) / 2;
  const room = Math.max(lengthOf(across) - size.width - EDGE, 0);
  const left = startOf(across) + (isRight ? EDGE : room);
  const tops = [startOf(up) + 2, startOf(up) + Math.max(lengthOf(up) - size.height - EDGE, 2)];
  return tops.map((top) => ({ left, top, right: left + size.width, bottom: top + size.height }));
}

export function moveAside(plot, x) {
  const shown = plot.querySelector(".hoverlayer .legend");
  if (!shown || !isDrawn(plot)) return;
  const points = drawnPoints(plot);
  const covered = (box) => points.filter((at) => isUnder(at, box)).length;
  const [upper, lower] = cornersFor(plot, x, shown.getBBox());
  const best = covered(upper) <= covered(lower) ? upper : lower;
  plot.style.setProperty("--hover-x", best.left + "px");
  plot.style.setProperty("--hover-y", best.top + "px");
}

function markOverTraining(name, moment, view) {
  const plot = plotOf(name);
  if (!isDrawn(plot)) return;
  const x = name === "loss" && view && view.x === "loss" ? moment.step : moment.x;
  /* "x unified" shows the values at x with a spike; where points do not come in order there is only a line */
  if (x !== null && hoverModeOf(plot) === "x unified") {
    window.Plotly.Fx.hover(plot, { xval: x }, "xy", true);
    moveAside(plot, x);
  } else if (name !== "noise") line(plot, x, "");
}

/* Steps ÷ S_min and examples ÷ E_min of the batch at that moment. */
function markOnTradeOff(moment) {
  const curve = plotOf("tradeoff");
  const kappa = curve && curve.layout && curve.layout.meta && curve.layout.meta.kappa;
  if (!kappa || !moment.noise || !moment.batch) return;
  const steps = 1 + (kappa * moment.noise) / moment.batch;
  dot("tradeoff", steps, steps / (steps - 1), said(moment.step));
}

/** Mark a moment in all figures but the one that it comes from. */
export function markMoment(moment, source, view) {
  clearMarks();
  OVER_TRAINING.filter((name) => name !== source).forEach((name) => markOverTraining(name, moment, view));
  const layers = plotOf("layers");
  const isMap = layers && layers.data && layers.data.some((trace) => trace.type === "heatmap");
  if (source !== "layers" && isMap && isDrawn(layers)) line(layers, moment.step, said(moment.step));
  markOnTradeOff(moment);
  dot("against", moment.loss, moment.noise, said(moment.step));
}

/** Take the marks away in all figures but one. */
export function unmark(source) {
  clearMarks();
  const others = OVER_TRAINING.filter((name) => name !== source).map(plotOf);
  others.filter(isDrawn).forEach((plot) => window.Plotly.Fx.unhover(plot));
}
