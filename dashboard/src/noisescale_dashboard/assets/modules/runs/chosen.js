/* Which runs are chosen in the list: they stand in the address, too. And what becomes of those that were deleted. */
import { CHOSEN } from "../address/address.js";
import { setProps, skip } from "../shell/dash.js";
import { keepList } from "./list.js";

const MOST = 20;
let filled = null;

/* Once for each visit of the page, when its first rows are there. */
export function selectAsAddressed(rows) {
  if (rows && rows.length) keepList(rows.filter((row) => row.kind !== "fold").map((row) => row.id));
  const ids = CHOSEN.read(window.location.search);
  const grid = document.getElementById("runs-grid");
  if (!rows || !rows.length || filled === grid) return skip();
  filled = grid;
  return ids.length ? rows.filter((row) => ids.includes(row.id)) : skip();
}

export function selectionAddressed(rows) {
  if (window.location.pathname !== "/runs") return skip();
  const ids = (rows || []).map((row) => row.id).slice(0, MOST);
  const query = CHOSEN.said(window.location.search, ids);
  /* no other callback reads them from the address: nobody is told */
  window.history.replaceState(window.history.state, "", "/runs" + (query ? "?" + query : ""));
  return ids;
}

/* Runs that were deleted are gone once the time for undoing is over, unless something else was done meanwhile. */
let purge = 0;

export function purgeLater(done, wait) {
  window.clearTimeout(purge);
  if (!done || !done.doomed || !done.doomed.length) return skip();
  purge = window.setTimeout(() => {
    if (document.getElementById("runs-outcome")) setProps("runs-purge", { data: Date.now() });
  }, wait);
  return skip();
}
