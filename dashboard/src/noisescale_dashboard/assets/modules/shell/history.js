/* Entries of the browser's history. A choice makes a new one, a drag or zoom replaces it; links between pages keep what is loaded. */
import { OWN_PROJECT } from "../address/address.js";
import { closestOf } from "./page.js";

/* Dash's dcc.Location hears of a new address by this event of its own alone (Dash 4.4); it has no public name. */
const CHANGED = "_dashprivate_pushstate";
const tell = () => window.dispatchEvent(new CustomEvent(CHANGED));

/* -- the project that the switch in the header shows -- */

const projectIn = (search) => new URLSearchParams(search).get("project") || null;
let lastProject = null;

/** The project of this page: that of its address; a plan of one run names none and belongs to the one before. */
export function projectHere() {
  const { pathname, search } = window.location;
  if (projectIn(search) || pathname !== "/planner") lastProject = projectIn(search);
  return lastProject;
}

/** The address of a page of ours, with the project of this one where it names none. */
export function carry(url) {
  const project = projectHere();
  const [page, anchor] = url.split("#");
  const isOurs = /^\/(?!exports\/|login|assets\/|api\/)/.test(page);
  if (!project || !isOurs || projectIn(page.split("?")[1] || "")) return url;
  const said = page + (page.includes("?") ? "&" : "?") + "project=" + encodeURIComponent(project);
  return anchor === undefined ? said : said + "#" + anchor;
}

/** Go to an address as it is: it may say another project, or none. */
export function leave(url, project) {
  lastProject = project;
  window.history.pushState(null, "", url);
  tell();
}

/** Call `heard` whenever the address has changed. */
export const onAddress = (heard) => window.addEventListener(CHANGED, heard);

/** Go to an address of ours without loading the page anew. */
export function go(url) {
  window.history.pushState(null, "", carry(url));
  tell();
}

/** Write the query part of this page's address. */
export function write(query, isReplaced) {
  /* what is asked for now is waited for */
  delete document.documentElement.dataset.quiet;
  const path = window.location.pathname;
  const said = path + (query ? "?" + query : "");
  const url = OWN_PROJECT.includes(path) ? said : carry(said);
  if (url === window.location.pathname + window.location.search) return;
  window.history[isReplaced ? "replaceState" : "pushState"](null, "", url);
  /* the view is known already: those who read the address can wait until what a drag asks for is under way */
  if (isReplaced) window.setTimeout(tell, 400);
  else tell();
}

/** Follow links to pages of ours; a click with a key or another button is the browser's. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = closestOf(event, "a[data-go]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    go(link.getAttribute("href"));
    window.scrollTo(0, 0);
  });
}
