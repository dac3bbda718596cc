/* Views that a team shares: what this page shows is what its address says, without what is the reader's own. */
import { setProps, skip, skips, triggers } from "./dash.js";
import { closestOf } from "./page.js";

const PAGES = { "/": "overview", "/runs": "runs", "/compare": "compare", "/sweeps": "sweeps", "/planner": "planner" };
/* The project is the one that shares the view; chosen rows and the name of a view of one's own are the reader's. */
const NOT_SHARED = ["project", "sel", "view"];
const ELSEWHERE = "Open Overview, Runs, Compare, Sweeps or Planner to share what it shows.";
let renamed = null;

function shown() {
  const query = new URLSearchParams(window.location.search);
  NOT_SHARED.forEach((name) => query.delete(name));
  return { page: PAGES[window.location.pathname], query: query.toString() };
}

const at = (change) => ({ ...change, at: Date.now() });

/** What the form or "Undo" asks for. */
export function teamViewWanted(clicks, submitted, undone, name, done) {
  const by = triggers();
  if (!by.length) return skip();
  if (by.includes("team-views-undo.n_clicks")) return done && done.undo ? at(done.undo) : skip();
  const wanted = (name || "").trim();
  if (!wanted) return skip();
  if (renamed !== null) return at({ do: "rename", id: renamed, name: wanted });
  const { page, query } = shown();
  if (page) return at({ do: "add", name: wanted, page, query });
  setProps("team-views-done", { data: { words: ELSEWHERE } });
  return skip();
}

/** What became of it; the form is free again once it was done. */
export function teamViewDone(done) {
  if (!done) return skips(4);
  if (!done.is_done) return [done.words, true, skip(), skip()];
  renamed = null;
  return [done.words, !done.undo, "", "Share"];
}

export function watchTeamViews() {
  document.addEventListener("click", (event) => {
    const rename = closestOf(event, "[data-view-rename]");
    const remove = closestOf(event, "[data-view-delete]");
    if (remove) setProps("team-views-change", { data: at({ do: "delete", id: remove.dataset.viewDelete }) });
    if (!rename) return;
    renamed = rename.dataset.viewRename;
    setProps("team-views-name", { value: rename.dataset.viewName });
    setProps("team-views-share", { children: "Rename" });
    document.getElementById("team-views-name").focus();
  });
}
