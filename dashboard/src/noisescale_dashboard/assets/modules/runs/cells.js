/* Cells of the table of runs. Text is set through React.createElement, so a name is never markup. */
import { setProps } from "../shell/dash.js";
import { pathsOf } from "./sparklines.js";

const h = (...args) => window.React.createElement(...args);
const dash = () => h("span", { className: "dim" }, "–");

/* -- how the table sorts: its rows come sorted -- */

export const keepOrder = () => 0;

export function reportSort(params) {
  if (params.source !== "uiColumnSorted") return;
  const sorted = params.api.getColumnState().find((column) => column.sort);
  setProps("runs-sort", { data: sorted ? (sorted.sort === "desc" ? "-" : "") + sorted.colId : "-misfit" });
}

/* -- a run -- */

function status(d) {
  const style = d.status === "silent" || d.status === "crashed" ? "stalled" : d.status;
  return h("span", { className: "dot " + style, title: d.statusWords, role: "img", "aria-label": d.statusWords });
}

const BASELINE = "Baseline: Compare sets the other runs of its project against this one";

/* A word for those who hear the page, and a mark for those who see it. */
function baseline(d) {
  if (!d.baseline) return null;
  return h("span", { className: "i xs i-pin pinned-run", role: "img", title: BASELINE, "aria-label": BASELINE });
}

const pageOf = (d) => ({ href: "/runs/" + encodeURIComponent(d.id), "data-go": "page" });

/* What stands beside the name in its cell, and a letter, in pixels: a wide column shows the whole name. */
const BESIDE = 52;
/* Beside the name of a fold, and in the columns that it leaves empty. */
const COUNT = 150;
const EMPTY = 262;
const LETTER = 7.6;

function nameThatFits(d, column) {
  const width = column ? column.getActualWidth() : 0;
  const beside = isFold(d) ? COUNT - EMPTY : BESIDE;
  return d.name.length * LETTER <= width - beside ? d.name : d.short || d.name;
}

export function RunName({ data: d, column }) {
  if (isFold(d)) return h(FoldName, { data: d, column });
  const words = d.tags.join(" · ");
  const tags = words ? h("span", { className: "tags", title: words }, words) : null;
  const name = h("a", { ...pageOf(d), title: d.name }, nameThatFits(d, column), baseline(d));
  const both = h("span", { className: "named" }, name, tags);
  return h("span", { className: d.child ? "run-name child" : "run-name" }, status(d), both);
}

/* -- a row that several runs stand behind -- */

const isFold = (d) => d.kind === "fold";

/* Unfolds the row, or folds it again; the arrow is a button of its own, so that the name can be a link. */
function FoldName({ data: d, column }) {
  const toggle = () => setProps("runs-toggled", { data: { key: d.id, at: Date.now() } });
  const act = (d.open ? "Hide " : "Show ") + d.count + " of " + d.name;
  const arrow = h("span", { className: "i xs i-" + (d.open ? "chev" : "chevr"), "aria-hidden": "true" });
  const button = { type: "button", className: "unfold", onClick: toggle, "aria-expanded": d.open, "aria-label": act };
  const about = { title: d.title };
  const words = column && !d.noise ? nameThatFits(d, column) : d.short;
  const name = d.href ? h("a", { ...about, href: d.href, "data-go": "page" }, words) : h("b", about, words);
  const number = h("span", { className: "chip tag" }, d.count);
  return h("span", { className: "run-name fold" }, h("button", button, arrow), name, number);
}

function FoldLine({ data: d }) {
  const noise = d.noise ? h("span", { className: "sub" }, "noise ", d.noise, ", median") : null;
  const batch = h("span", { className: "sub" }, "batch ", h("b", { className: "batch-text" }, d.batch), " " + d.unit);
  return h(
    "span",
    { className: "run-line fold" },
    h("span", { className: "two" }, h(FoldName, { data: d }), noise, batch),
  );
}

function noiseLine(d) {
  const style = !d.interval ? "dim" : d.state === "resolved" ? "noise-text" : "t2";
  const unit = " " + d.unit + (d.interval ? ", " + d.interval : "");
  return h("span", { className: "sub" }, "noise ", h("b", { className: style }, d.noise), unit);
}

function batchLine(d) {
  const batch = h("b", { className: "batch-text" }, d.batch);
  return h(
    "span",
    { className: "sub" },
    "batch ",
    batch,
    " · ",
    h("b", { className: "say " + d.decision }, d.decisionWords),
  );
}

/* All of a row in one cell, on a phone. */
export function RunLine({ data: d }) {
  if (isFold(d)) return h(FoldLine, { data: d });
  const more = d.moreLine ? h("span", { className: "sub", title: d.moreLine }, d.moreLine) : null;
  const two = h(
    "span",
    { className: "two" },
    h("span", { className: "nm", title: d.name }, d.short || d.name, baseline(d)),
    noiseLine(d),
    batchLine(d),
    more,
  );
  return h(
    "a",
    { className: d.child ? "run-line child" : "run-line", ...pageOf(d) },
    status(d),
    two,
    picture(d.spark, 64, 26),
  );
}

function picture(spark, width, height) {
  if (!spark) return h("span", { className: "spark-none", style: { width } });
  const paths = pathsOf(spark, width, height);
  const about = { role: "img", "aria-label": "noise scale and batch over training" };
  return h(
    "svg",
    { className: "spark", width, height, ...about },
    h("path", { className: "band", d: paths.band }),
    h("path", { className: "bt", d: paths.batch }),
    h("path", { className: "ln", d: paths.noise }),
    h("path", { className: "lb", d: paths.bound }),
  );
}

export const Spark = ({ data }) => (isFold(data) ? null : picture(data.spark, 88, 26));

export function NoiseScale({ data: d }) {
  if (isFold(d) && !d.noise) return null;
  if (!d.interval) return h("span", { className: "dim", title: d.noiseTitle }, d.noise);
  const value = h("b", { className: d.state === "resolved" ? "" : "t2" }, d.noise);
  return h("span", { title: d.noiseTitle }, value, h("span", { className: "dim after" }, d.interval));
}

export const Batch = ({ data: d }) =>
  h("span", { title: d.batchTitle }, d.batch, h("span", { className: "dim after" }, d.unit));
export const Efficiency = ({ data: d }) => h("span", { title: d.efficiencyTitle }, d.efficiency);
export const Loss = ({ data: d }) => h("span", { title: d.lossTitle }, d.loss);
export const Step = ({ data: d }) => h("span", { title: d.stepTitle }, d.step);

export function More({ data, colDef }) {
  if (isFold(data)) return null;
  const words = data.more && data.more[colDef.colId];
  return words === undefined || words === null ? dash() : h("span", { title: words }, words);
}

const ICONS = { inc: "up", dec: "down", keep: "equal", ins: "dash" };

export function Decision({ data: d }) {
  if (isFold(d)) return null;
  const icon = h("span", { className: "i xs i-" + ICONS[d.decision], "aria-hidden": "true" });
  return h("span", { className: "pill " + d.decision, title: d.decisionTitle }, icon, d.decisionWords);
}

/* Batch ÷ recommended, log₂, ends at 1/16 and 16; shaded: within 2 ×. */
export function Fit({ data }) {
  const { fit } = data;
  if (isFold(data)) return null;
  if (!fit) return dash();
  const [width, height] = [92, 26];
  const middle = width / 2;
  const across = (ratio) => middle + (Math.max(-4, Math.min(4, Math.log2(ratio))) * (middle - 6)) / 4;
  const at = across(fit.at);
  const span = fit.open ? [at - 6, Math.max(3, at - 26)] : [across(fit.low), across(fit.high)];
  const mark = { className: fit.open ? "dm open" : "dm", x: at - 4, y: 9, width: 8, height: 8, rx: 1 };
  return h(
    "svg",
    { className: "fit", width, height, role: "img", "aria-label": fit.words },
    h("title", null, fit.words),
    h("rect", { className: "z", x: across(0.5), y: 5, width: across(2) - across(0.5), height: 16, rx: 2 }),
    h("line", { className: "ax", x1: middle, x2: middle, y1: 5, y2: 21 }),
    h("line", { className: fit.open ? "to" : "ci", x1: span[0], x2: span[1], y1: 13, y2: 13 }),
    h("rect", mark),
  );
}
