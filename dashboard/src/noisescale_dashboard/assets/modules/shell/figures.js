/* Figures are drawn light, stored as one text, and recoloured here for a dark page. */
import { context, skip } from "./dash.js";
import { currentTheme } from "./theme.js";

/* "#2A6BD4" as "42,107,212" */
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",");

/** A function that gives the palette's other colour for one of its colours, and any other as it is. */
export function translator(palette) {
  const hex = {};
  const rgb = {};
  Object.entries(palette).forEach(([from, to]) => {
    hex[from.toUpperCase()] = to;
    rgb[channels(from)] = channels(to);
  });
  return (color) => {
    if (typeof color !== "string") return color;
    if (color[0] === "#") return hex[color.toUpperCase()] || color;
    const found = /^rgba\((\d+),(\d+),(\d+),([\d.]+)\)$/.exec(color);
    const to = found && rgb[found.slice(1, 4).join(",")];
    return to ? "rgba(" + to + "," + found[4] + ")" : color;
  };
}

const DATA = ["x", "y", "z", "customdata", "meta"];

/** The figure in other colours: only under keys that name a colour, since a layer may be called "#2A6BD4". */
export function recolored(node, translate, isColor = false) {
  if (Array.isArray(node)) {
    if (!isColor && (!node.length || typeof node[0] !== "object")) return node;
    return node.map((item) => recolored(item, translate, isColor));
  }
  if (node && typeof node === "object") {
    const fields = Object.entries(node).map(([key, value]) => [
      key,
      DATA.includes(key) ? value : recolored(value, translate, /color/i.test(key)),
    ]);
    return Object.fromEntries(fields);
  }
  return isColor ? translate(node) : node;
}

let palette = {};

/** What is drawn, in the light palette: for pictures, which have one ground whatever is shown. */
export function toLight(node) {
  if (currentTheme() !== "dark") return node;
  const back = Object.fromEntries(Object.entries(palette).map(([light, dark]) => [dark, light]));
  return recolored(node, translator(back));
}

/* A figure as it is stored: one text, which is read once. */
const read = new WeakMap();

export function figureOf(stored) {
  if (!stored || stored.json === undefined) return stored;
  if (!read.has(stored)) read.set(stored, JSON.parse(stored.json));
  return read.get(stored);
}

export function paintOne(stored, theme, given) {
  palette = given || palette;
  if (!stored) return skip();
  if ((theme || currentTheme()) !== "dark") return figureOf(stored);
  return recolored(figureOf(stored), translator(palette));
}

/** Figures by the name of their graph without the page's: "noise" is drawn in "run-noise". */
export function paintAll(figures, theme, given) {
  const nameOf = (graph) => graph.id.slice(graph.id.indexOf("-") + 1);
  return context().outputs_list.map((graph) => paintOne(figures && figures[nameOf(graph)], theme, given));
}
