/* A run that is pointed at in one card of the overview is raised in the others: its row, its panel, what has happened to it. */
import { closestOf, element } from "../shell/page.js";
import { axisOf, isDrawn, lengthOf, pixelOf, plotIn, startOf } from "../shell/plots.js";

const HEAD = 28;
const FOOT = 28;
const SIDE = 5;
const FIGURES = { "overview-misfit": rows, "overview-small": panels };
let raised = null;

const runOf = (trace) => (trace.customdata && trace.customdata[0] ? trace.customdata[0][0] : null);

/* The traces with this name and their figure; none before it is drawn. */
function tracesOf(id, name) {
  const plot = plotIn(id);
  const traces = plot && isDrawn(plot) && plot.data ? plot.data.filter((trace) => trace.name === name) : [];
  return traces.map((trace) => ({ plot, trace }));
}

function rows() {
  return tracesOf("overview-misfit", "batch now").map(({ plot, trace }) => {
    const y = axisOf(plot, "y", trace);
    const half = Math.abs(pixelOf(y, 0) - pixelOf(y, 1)) / 2;
    const middle = pixelOf(y, trace.y[0]);
    return { plot, run: runOf(trace), left: 0, right: plot.clientWidth, top: middle - half, bottom: middle + half };
  });
}

function panels() {
  return tracesOf("overview-small", "batch").map(({ plot, trace }) => {
    const x = axisOf(plot, "x", trace);
    const y = axisOf(plot, "y", trace);
    const [left, top] = [startOf(x), startOf(y)];
    return {
      plot,
      run: runOf(trace),
      left: left - SIDE,
      right: left + lengthOf(x) + SIDE,
      top: top - HEAD,
      bottom: top + lengthOf(y) + FOOT,
    };
  });
}

function markPlace(place) {
  const box = element("span", "raised-box");
  box.setAttribute("aria-hidden", "true");
  Object.assign(box.style, {
    left: place.left + "px",
    top: place.top + "px",
    width: place.right - place.left + "px",
    height: place.bottom - place.top + "px",
  });
  place.plot.appendChild(box);
}

function raise(run) {
  if (run === raised) return;
  raised = run;
  document.querySelectorAll(".raised-box").forEach((old) => old.remove());
  document.querySelectorAll("li[data-run]").forEach((item) => {
    item.classList.toggle("raised", run !== null && item.dataset.run === run);
  });
  if (run === null) return;
  const places = rows().concat(panels());
  places.filter((place) => place.run === run).forEach(markPlace);
}

function pointedAt(event) {
  const item = closestOf(event, "li[data-run]");
  if (item) return item.dataset.run;
  const id = Object.keys(FIGURES).find((one) => closestOf(event, "#" + one));
  if (!id || event.clientX === undefined) return null;
  const box = plotIn(id).getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  const found = FIGURES[id]().find((at) => x >= at.left && x <= at.right && y >= at.top && y <= at.bottom);
  return found ? found.run : null;
}

export function watchRaisedRun() {
  ["mousemove", "focusin"].forEach((name) =>
    document.addEventListener(name, (event) => {
      if (document.getElementById("overview-misfit")) raise(pointedAt(event));
      else raised = null;
    }),
  );
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && raised !== null) raise(null);
  });
}
