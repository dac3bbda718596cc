/* What plotly has drawn, and where. Its axes in pixels are private (`_fullLayout`, `_offset`, `l2p` of plotly 3.x; it has
   no public names for them), so they are read here alone. */
import { same } from "./dash.js";

/* Of each: in which settings and size it was asked for last. */
const asked = new WeakMap();
const SIZES = ["autosize", "width", "height"];

/** Plotly's element inside the graph with this id; null where none is drawn. */
export function plotIn(id) {
  const box = document.getElementById(id);
  return box && box.querySelector(".js-plotly-plot");
}

/** Whether plotly has laid the figure out. */
export const isDrawn = (plot) => Boolean(plot && plot._fullLayout && plot._fullLayout.xaxis);
export const hoverModeOf = (plot) => plot._fullLayout.hovermode;

/** The first axis of a figure, or that which a trace names: `kind` is "x" or "y". */
export const axisOf = (plot, kind, trace) =>
  plot._fullLayout[kind + "axis" + String((trace && trace[kind + "axis"]) || kind).slice(1)];

/** Where an axis begins and how long it is, in pixels of the figure. */
export const startOf = (axis) => axis._offset;
export const lengthOf = (axis) => axis._length;
/** Where a value stands, in pixels of the figure. */
export const pixelOf = (axis, value) => axis._offset + axis.l2p(axis.type === "log" ? Math.log10(value) : value);
/** Whether a place in pixels is on the axis. */
export const isOn = (axis, at) => at >= axis._offset - 1 && at <= axis._offset + axis._length + 1;

const frameOf = ({ config, layout }) => [config, SIZES.map((name) => layout && layout[name])];
/* plotly writes its own size there, which follows the box around it */
const withoutSize = (layout) => Object.entries(layout || {}).filter(([name]) => !SIZES.includes(name));

const isAsDrawn = (plot, figure) =>
  plot.data === figure.data &&
  !figure.frames &&
  same(withoutSize(plot.layout), withoutSize(figure.layout)) &&
  same(frameOf(figure), asked.get(plot));

/** Draw no figure that stands there: what a drag has changed Dash's graph writes into its figure, and draws that anew. */
export function drawOnlyChanges(plotly) {
  if (!plotly) return;
  const react = plotly.react;
  plotly.react = (plot, figure, ...others) => {
    if (plot && figure && figure.data) {
      if (isAsDrawn(plot, figure)) return Promise.resolve(plot);
      asked.set(plot, frameOf(figure));
    }
    return react.call(plotly, plot, figure, ...others);
  };
}

const isLine = (trace) =>
  String(trace.mode).includes("lines") && trace.line && trace.line.width > 0 && trace.fill === "none";

/** The places of all points of the lines that are drawn, in pixels of the figure. */
export function drawnPoints(plot) {
  const found = [];
  plot._fullData
    .filter((trace) => trace.visible === true && isLine(trace))
    .forEach((trace) => {
      const [across, up] = [axisOf(plot, "x", trace), axisOf(plot, "y", trace)];
      Array.from(trace.x || []).forEach((x, place) => {
        const y = trace.y[place];
        if (Number.isFinite(x) && Number.isFinite(y)) found.push({ x: pixelOf(across, x), y: pixelOf(up, y) });
      });
    });
  return found;
}

/** The point that was clicked, from the data of a click; null where there is none. */
export const clickedPoint = (click) => (click && click.points && click.points[0]) || null;
