/* The view of the list of runs: from its address at first and after back and forward, later from its controls. */
import { joined, RANGES, RUNS, split } from "../address/address.js";
import { isMissing, same, skip, skips, triggers } from "../shell/dash.js";
import { write } from "../shell/history.js";

/* The controls, in the order of the callback's inputs and, after the view, of its outputs. */
const FILTERS = [
  "q",
  "task",
  "group",
  "status",
  "decision",
  "tag",
  "since",
  "shelf",
  "trials",
  "where",
  "cols",
  "order",
];
const CONTROLS = [...FILTERS, ...RANGES];
/* Controls of several words, which stand in one word of the address. */
const LISTS = ["where", "cols"];
const MOST_OPEN = 8;
/* Fields that are written letter by letter: each letter is not an entry of the history. */
const TYPED = ["q", "tag", ...RANGES].map((key) => "runs-" + key + ".value");
const FIRST_PAGE = { ...RUNS.usual, page: 0 };

function shownOf(view, key) {
  if (LISTS.includes(key)) return split(view[key]);
  if (key === "order") return view.sort;
  return RANGES.includes(key) && view[key] === null ? "" : view[key];
}

function turned(by, view, numPages) {
  if (by.includes("runs-next.n_clicks")) return Math.min(Math.max(0, view.page + 1), numPages - 1);
  if (by.includes("runs-previous.n_clicks")) return Math.min(Math.max(0, view.page - 1), numPages - 1);
  return null;
}

function sortOf(by, values, sort, view) {
  const order = values[CONTROLS.indexOf("order")];
  if (by.includes("runs-sort.data")) return sort || RUNS.usual.sort;
  return (by.includes("runs-order.value") && order) || view.sort || RUNS.usual.sort;
}

/* The first page of what the controls say; the project is the switch's, in the header of every page. */
function viewOf(by, values, sort, view) {
  const now = { ...FIRST_PAGE, project: view.project };
  CONTROLS.forEach((key, place) => {
    const value = values[place];
    if (LISTS.includes(key)) now[key] = joined(value);
    else if (key !== "order") now[key] = isMissing(value) ? RUNS.usual[key] : value;
  });
  /* rows of other groups have other names */
  if (now.group === view.group) now.open = view.open;
  return { ...now, sort: sortOf(by, values, sort, view) };
}

/* The same page with a row unfolded, or folded again. */
function toggled(view, row) {
  const open = split(view.open);
  const now = open.includes(row.key) ? open.filter((one) => one !== row.key) : open.concat([row.key]);
  return { ...view, open: joined(now.slice(-MOST_OPEN)) };
}

export function runsView(search, ...given) {
  const by = triggers();
  const values = given.slice(0, CONTROLS.length);
  const [sort, row, , , view, cursors] = given.slice(CONTROLS.length);
  const others = skips(CONTROLS.length);
  const nothing = [skip(), ...others];
  if (window.location.pathname !== "/runs") return nothing;
  if (!view || by.includes("address.search")) {
    const now = { ...RUNS.read(search), page: 0 };
    if (view && same({ ...view, page: 0 }, now)) return nothing;
    return [now, ...CONTROLS.map((key) => shownOf(now, key))];
  }
  if (by.includes("runs-toggled.data") && row) {
    const now = toggled(view, row);
    write(RUNS.said(now));
    return [now, ...others];
  }
  const page = turned(by, view, cursors.length);
  if (page !== null) return [{ ...view, page }, ...others];
  const now = viewOf(by, values, sort, view);
  if (same({ ...view, page: 0, view: null }, now)) return nothing;
  write(
    RUNS.said(now),
    by.some((id) => TYPED.includes(id)),
  );
  return [now, ...CONTROLS.map((key) => (key === "order" ? now.sort : skip()))];
}

/* A condition made of field, comparison and value joins those that are set. A field that looks like one is quoted. */
export function addCondition(clicks, submitted, field, by, value, have) {
  const said = String(value === null || value === undefined ? "" : value).trim();
  const name = (field || "").trim();
  if (!triggers().length || !name || !said) return skips(2);
  const one = (/[<>=!"]/.test(name) ? JSON.stringify(name) : name) + " " + (by || "=") + " " + said;
  return [(have || []).filter((other) => other !== one).concat([one]), ""];
}

/* What the list of a view is as a file: the same words as in the address. */
export const runsExport = (view) => (view ? "/exports/runs.csv?" + RUNS.said(view) : skip());
