/* The list of runs as it was last seen in this tab: [ and ] go through it on the page of a run. */

const KEY = "noisescale-list";

export const keepList = (ids) => window.sessionStorage.setItem(KEY, JSON.stringify(ids));

/** The id that stands `by` places after this one; undefined where there is none. */
export function neighbourOf(id, by) {
  const ids = JSON.parse(window.sessionStorage.getItem(KEY) || "[]");
  return ids.includes(id) ? ids[ids.indexOf(id) + by] : undefined;
}
