/* Views of the list of runs that the reader has named: they stay in this browser, each is an address. */
import { RUNS } from "../address/address.js";
import { component, skip, triggers } from "../shell/dash.js";
import { go } from "../shell/history.js";
import { closeDetails } from "../shell/page.js";

const MOST = 30;

/* What a view asks, whatever it is called. */
const words = (view) => RUNS.said({ ...view, view: null });
const wordsNow = () => words(RUNS.read(window.location.search));
const address = (one) => "/runs?" + (one.query ? one.query + "&" : "") + "view=" + encodeURIComponent(one.name);

/* The view shown is a saved one where it asks the same, whatever the address calls it. */
export function savedViews(views, view) {
  const all = views || [];
  /* a view that names no project is of whichever the switch shows */
  const said = view && [words(view), words({ ...view, project: null })];
  const shown = view && all.find((one) => said.includes(one.query));
  return [all.map((one) => one.name), shown ? shown.name : null, !shown];
}

export function openSavedView(name, views) {
  const one = (views || []).find((saved) => saved.name === name);
  if (
    one &&
    window.location.pathname === "/runs" &&
    ![wordsNow(), words({ ...RUNS.read(window.location.search), project: null })].includes(one.query)
  )
    go(address(one));
  return name || "";
}

export function keepView(save, submit, forget, name, shown, views) {
  const by = triggers();
  const all = views || [];
  const wanted = (name || "").trim();
  if (by.includes("runs-forget.n_clicks")) return all.filter((one) => one.name !== shown);
  if (!wanted || !by.length) return skip();
  const kept = all.filter((one) => one.name !== wanted).concat([{ name: wanted, query: wordsNow() }]);
  closeDetails();
  return kept.slice(-MOST);
}

function linkTo(one) {
  const icon = component("Span", { className: "i i-bookmark", "aria-hidden": "true" });
  const children = [icon, component("Span", { children: one.name })];
  return component("A", { href: address(one), "data-go": "page", title: one.name, children });
}

export function linkedViews(views) {
  if (!views || !views.length) return [];
  return [component("Div", { className: "lab", children: "Saved views" }), ...views.map(linkTo)];
}
