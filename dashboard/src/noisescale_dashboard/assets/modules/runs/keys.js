/* Keys in the list of runs: j and k go from name to name, x chooses the row, c compares the chosen ones; Enter follows
   the name, as on every link, also from another cell. [ and ] go from run to run. */
import { go } from "../shell/history.js";
import { isTaken } from "../shell/keys.js";
import { neighbourOf } from "./list.js";

const ROW = "#runs-grid .ag-row";

const numberOf = (row) => Number(row.getAttribute("row-index"));
const rowOf = (link) => numberOf(link.closest(".ag-row"));
const names = () => Array.from(document.querySelectorAll(ROW + " a[data-go]")).sort((a, b) => rowOf(a) - rowOf(b));
const focused = () => document.activeElement.closest && document.activeElement.closest(ROW);

function move(by) {
  const all = names();
  const row = focused();
  const outside = by > 0 ? -1 : all.length;
  const at = row ? all.findIndex((name) => rowOf(name) === numberOf(row)) : outside;
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  if (next) next.focus();
}

function choose() {
  const row = focused();
  /* a table with a pinned column has two elements a row */
  const box = row && document.querySelector(ROW + '[row-index="' + numberOf(row) + '"] .ag-checkbox-input');
  if (box) box.click();
}

function open() {
  const row = focused();
  const name = row && names().find((link) => rowOf(link) === numberOf(row));
  if (name) name.click();
}

function compare() {
  const bar = document.getElementById("runs-bar");
  const link = document.getElementById("runs-compare");
  if (bar && !bar.hidden && link) link.click();
}

/* From the page of a run to its neighbours in the list. */
function goBy(by) {
  const next = neighbourOf(window.location.pathname.split("/")[2], by);
  if (next !== undefined) go("/runs/" + encodeURIComponent(next));
}

const ON_A_RUN = { "[": () => goBy(-1), "]": () => goBy(1) };
const IN_THE_LIST = { c: compare, Enter: open, j: () => move(1), k: () => move(-1), x: choose };

function keysHere() {
  if (document.getElementById("runs-grid")) return IN_THE_LIST;
  return /^\/runs\/[^/]+$/.test(window.location.pathname) ? ON_A_RUN : {};
}

function pressed(event) {
  if (isTaken(event)) return;
  const act = keysHere()[event.key];
  /* a link or a button does by itself what Enter is for */
  if (!act || (act === open && !event.target.matches(".ag-cell"))) return;
  event.preventDefault();
  act();
}

export const watchListKeys = () => document.addEventListener("keydown", pressed);
