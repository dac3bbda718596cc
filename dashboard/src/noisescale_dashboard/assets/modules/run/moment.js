/* A moment of training: what is hovered in one figure of a run is marked in all of them. A click pins it, Esc releases it. Nothing is asked. */
import { context, setProps, skip } from "../shell/dash.js";
import { figureOf } from "../shell/figures.js";
import { onAddress } from "../shell/history.js";
import { closestOf } from "../shell/page.js";
import { clickedPoint } from "../shell/plots.js";
import { columnsOf, momentAt, stepOf } from "./moments.js";
import { clearMarks, markMoment, moveAside, OVER_TRAINING, plotOf, said, unmark } from "./moment-marks.js";

const FIGURES = OVER_TRAINING.concat("layers");
let pinned = null;
let series = null;
let view = null;

const show = (moment, source) => markMoment(moment, source, view);

function leave(source) {
  unmark(source);
  if (pinned !== null) again();
}

function again() {
  const moment = momentAt(series, pinned);
  if (moment) show(moment, null);
}

function isUnder(name) {
  const box = document.getElementById("run-" + name);
  return box && box.matches(":hover");
}

function hovered(name, point) {
  if (!FIGURES.some(isUnder)) {
    leave(null);
    return;
  }
  if (!series || !point || !isUnder(name) || pinned !== null) return;
  const moment = momentAt(series, stepOf(series, view, name, point));
  if (moment) show(moment, name);
}

/* plotly is in the midst of telling others, and takes a hover of ours amiss; of several only the last is worth a frame */
let frame = 0;
function soon(name, point) {
  window.cancelAnimationFrame(frame);
  frame = window.requestAnimationFrame(() => hovered(name, point));
}

/* plotly is listened to itself: a callback of Dash for every move of the mouse would hold up whatever is drawn meanwhile */
const heard = new WeakSet();
function listenTo(event) {
  const plot = closestOf(event, ".js-plotly-plot");
  const name = plot && FIGURES.find((one) => plotOf(one) === plot);
  if (!name || !plot.on || heard.has(plot)) return;
  heard.add(plot);
  plot.on("plotly_hover", (hover) => {
    const point = clickedPoint(hover);
    if (point && name !== "layers") moveAside(plot, point.x);
    soon(name, point);
  });
  plot.on("plotly_unhover", () => soon(name, null));
}

function release(event) {
  if (event.key !== "Escape" || pinned === null) return;
  pinned = null;
  leave(null);
  setProps("run-moment", { data: { step: null } });
}

export function watchMoments() {
  let path = window.location.pathname;
  document.addEventListener("pointerover", listenTo);
  document.addEventListener("keydown", release);
  /* another page has other moments */
  onAddress(() => {
    if (window.location.pathname === path) return;
    path = window.location.pathname;
    pinned = null;
    clearMarks();
  });
}

/* -- callbacks -- */

export function momentPinned() {
  const [by] = context().triggered;
  const point = clickedPoint(by && by.value);
  if (!point || !series) return skip();
  const name = by.prop_id.slice("run-".length, by.prop_id.lastIndexOf("."));
  const step = stepOf(series, view, name, point);
  if (step === null) return skip();
  pinned = pinned === step ? null : step;
  if (pinned === null) leave(null);
  else again();
  return { step: pinned };
}

/* New figures: their points are read, and a pinned moment is marked again once they are drawn. */
export function momentSeries(figures, seriesView) {
  series = columnsOf(figures && figureOf(figures.noise));
  view = seriesView;
  if (pinned !== null) window.setTimeout(again, 300);
  return skip();
}

export function momentWords(pin) {
  if (!pin || pin.step === null) return "";
  const moment = momentAt(series, pin.step);
  return moment ? "Pinned: " + said(moment.step) + ". Esc releases it." : "";
}
