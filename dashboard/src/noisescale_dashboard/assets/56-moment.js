/* A moment of training: what is hovered in one figure of a run is marked in all of them. A click pins it, Esc releases it. Nothing is asked. */
(function () {
  const skip = () => window.dash_clientside.no_update;
  const OVER_TRAINING = ["noise", "terms", "loss"];
  let pinned = null, series = null, view = null;

  const plot = (name) => { const box = document.getElementById("run-" + name); return box && box.querySelector(".js-plotly-plot"); };
  const drawn = (gd) => gd && gd._fullLayout && gd._fullLayout.xaxis;
  const isLog = (axis) => axis.type === "log";
  const pixel = (axis, value) => axis._offset + axis.l2p(isLog(axis) ? Math.log10(value) : value);

  /* The points of the main figure by name; all columns are of one length. */
  function columnsOf(figure) {
    const meta = figure && figure.layout && figure.layout.meta;
    if (!meta || !meta.columns) return null;
    const found = {}, batch = figure.data.find((trace) => trace.name === "batch");
    meta.columns.forEach(([name, values]) => {
      if (name === "step") found.step = values;
      if (name.startsWith("noise scale (")) found.noise = values;
      if (name.startsWith("batch (")) found.batch = values;
      if (name === "training loss") found.loss = values;
    });
    found.x = batch ? batch.x : found.step;
    return found;
  }

  function nearest(values, wanted) {
    let best = -1;
    values.forEach((value, i) => {
      if (value !== null && (best < 0 || Math.abs(value - wanted) < Math.abs(values[best] - wanted))) best = i;
    });
    return best;
  }

  /* The step that is hovered: figures over anything but steps say it through the points of the main one. */
  function stepOf(name, point) {
    const isOverSteps = name === "layers" || !view || view.x === "step" || (view.x === "loss" && name === "loss");
    if (isOverSteps) return Math.round(point.x);
    if (name === "noise" && point.customdata && Number.isFinite(point.customdata[2])) return point.customdata[2];
    const at = nearest(series.x, point.x);
    return at < 0 ? null : series.step[at];
  }

  function momentAt(step) {
    const at = series && step !== null ? nearest(series.step, step) : -1;
    if (at < 0) return null;
    const of = (name) => (series[name] ? series[name][at] : null);
    return { step: series.step[at], x: of("x"), noise: of("noise"), batch: of("batch"), loss: of("loss") };
  }

  /* -- marks -- */

  function mark(gd, className, style, words) {
    const made = document.createElement("span");
    made.className = "moment " + className;
    Object.assign(made.style, style);
    if (words) made.dataset.words = words;
    made.setAttribute("aria-hidden", "true");
    gd.appendChild(made);
  }

  const clear = () => document.querySelectorAll(".moment").forEach((old) => old.remove());
  const inside = (axis, at) => at >= axis._offset - 1 && at <= axis._offset + axis._length + 1;

  function line(gd, value, words) {
    const { xaxis, yaxis } = gd._fullLayout, left = value === null ? NaN : pixel(xaxis, value);
    if (!Number.isFinite(left) || !inside(xaxis, left)) return;
    mark(gd, "line", { left: left + "px", top: yaxis._offset + "px", height: yaxis._length + "px" }, words);
  }

  function dot(name, x, y, words) {
    const gd = plot(name);
    if (!drawn(gd) || !(x !== null && y !== null && Number.isFinite(x) && Number.isFinite(y))) return;
    const { xaxis, yaxis } = gd._fullLayout, left = pixel(xaxis, x), top = pixel(yaxis, y);
    if (!inside(xaxis, left) || !inside(yaxis, top)) return;
    mark(gd, left > xaxis._offset + 0.6 * xaxis._length ? "dot left" : "dot", { left: left + "px", top: top + "px" }, words);
  }

  const said = (step) => "step " + step.toLocaleString("en-US");

  function show(moment, source) {
    clear();
    OVER_TRAINING.filter((name) => name !== source).forEach((name) => {
      const gd = plot(name);
      if (!drawn(gd)) return;
      const x = name === "loss" && view && view.x === "loss" ? moment.step : moment.x;
      /* "x unified" shows the values at x with a spike; where points do not come in order there is only a line */
      if (x === null || gd._fullLayout.hovermode !== "x unified") { if (name !== "noise") line(gd, x, ""); return; }
      window.Plotly.Fx.hover(gd, { xval: x }, "xy", true);
    });
    const layers = plot("layers"), is_map = layers && layers.data && layers.data.some((trace) => trace.type === "heatmap");
    if (source !== "layers" && is_map && drawn(layers)) line(layers, moment.step, said(moment.step));
    const curve = plot("tradeoff"), kappa = curve && curve.layout && curve.layout.meta && curve.layout.meta.kappa;
    if (kappa && moment.noise && moment.batch) {
      const steps = 1 + (kappa * moment.noise) / moment.batch;
      dot("tradeoff", steps, steps / (steps - 1), said(moment.step));
    }
    dot("against", moment.loss, moment.noise, said(moment.step));
  }

  function leave(source) {
    clear();
    OVER_TRAINING.filter((name) => name !== source).forEach((name) => { const gd = plot(name); if (drawn(gd)) window.Plotly.Fx.unhover(gd); });
    if (pinned !== null) again();
  }

  function again() {
    const moment = momentAt(pinned);
    if (moment) show(moment, null);
  }

  /* -- callbacks -- */

  const isUnder = (name) => { const box = document.getElementById("run-" + name); return box && box.matches(":hover"); };

  function hovered(name, point) {
    if (!OVER_TRAINING.concat("layers").some(isUnder)) { leave(null); return; }
    if (!series || !point || !isUnder(name) || pinned !== null) return;
    const moment = momentAt(stepOf(name, point));
    if (moment) show(moment, name);
  }

  /* plotly is in the midst of telling others, and takes a hover of ours amiss; of several only the last is worth a frame */
  let frame = 0;
  function soon(name, point) {
    window.cancelAnimationFrame(frame);
    frame = window.requestAnimationFrame(() => hovered(name, point));
  }

  /* plotly is listened to itself: a callback of Dash for every move of the mouse would hold up whatever is drawn meanwhile */
  document.addEventListener("pointerover", (event) => {
    const gd = event.target.closest && event.target.closest(".js-plotly-plot");
    const name = gd && OVER_TRAINING.concat("layers").find((one) => plot(one) === gd);
    if (!name || !gd.on || gd.noisescaleListens) return;
    gd.noisescaleListens = true;
    gd.on("plotly_hover", (hover) => soon(name, hover.points && hover.points[0]));
    gd.on("plotly_unhover", () => soon(name, null));
  });

  function momentPinned() {
    const [by] = window.dash_clientside.callback_context.triggered, point = by && by.value && by.value.points && by.value.points[0];
    if (!point || !series) return skip();
    const step = stepOf(by.prop_id.slice("run-".length, by.prop_id.lastIndexOf(".")), point);
    if (step === null) return skip();
    pinned = pinned === step ? null : step;
    if (pinned === null) leave(null); else again();
    return { step: pinned };
  }

  /* New figures: their points are read, and a pinned moment is marked again once they are drawn. */
  function momentSeries(figures, seriesView) {
    series = columnsOf(figures && window.noisescaleTheme.figureOf(figures.noise));
    view = seriesView;
    if (pinned !== null) window.setTimeout(again, 300);
    return skip();
  }

  function momentWords(pin) {
    if (!pin || pin.step === null) return "";
    const moment = momentAt(pin.step);
    return moment ? "Pinned: " + said(moment.step) + ". Esc releases it." : "";
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || pinned === null) return;
    pinned = null;
    leave(null);
    window.dash_clientside.set_props("run-moment", { data: { step: null } });
  });
  /* another page has other moments */
  let path = window.location.pathname;
  window.addEventListener("_dashprivate_pushstate", () => {
    if (window.location.pathname === path) return;
    path = window.location.pathname;
    pinned = null;
    clear();
  });

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.noisescale = Object.assign(window.dash_clientside.noisescale || {}, { momentPinned, momentSeries, momentWords });
})();
