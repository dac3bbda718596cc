/* A page for modules that run without a browser: what they read and call of `window` and `document`, nothing drawn.
   Import it before the modules: the fields of addresses are read from the page when address.js is loaded. */
import { readFileSync } from "node:fs";

const QUESTION = readFileSync(new URL("question.json", import.meta.url), "utf8");

export const SKIP = { description: "no update" };
/** Properties that were set by callbacks, as [id, properties]. */
export const put = [];
/** Entries of the history: "push /runs?q=a" or "replace …". */
export const entries = [];
/** Elements by their id. */
export const elements = {};
const listeners = {};

const listen = (name, heard) => (listeners[name] = [...(listeners[name] || []), heard]);
const enter = (how) => (state, title, url) => {
  entries.push(how + " " + url);
  goTo(url);
};

globalThis.document = {
  hidden: false,
  body: { classList: { toggle: () => {} } },
  documentElement: {
    dataset: { question: QUESTION },
    theme: "light",
    getAttribute: () => document.documentElement.theme,
  },
  addEventListener: listen,
  getElementById: (id) => elements[id] || null,
  querySelector: () => null,
  querySelectorAll: () => [],
};

globalThis.window = {
  addEventListener: listen,
  dispatchEvent: (event) => (listeners[event.type] || []).forEach((heard) => heard(event)),
  dash_clientside: {
    no_update: SKIP,
    callback_context: { triggered: [], inputs_list: [], states_list: [], outputs_list: [] },
    set_props: (id, props) => put.push([id, props]),
  },
  history: { state: null, pushState: enter("push"), replaceState: enter("replace") },
  location: { pathname: "/", search: "" },
  sessionStorage: { getItem: () => null, setItem: () => {} },
  setInterval: () => 0,
  setTimeout: (act) => act(),
  clearTimeout: () => {},
  React: { createElement: (type, props, ...children) => ({ type, props, children }) },
};

/** Stand at an address; nobody is told. */
export function goTo(url) {
  const [pathname, search] = url.split("?");
  Object.assign(window.location, { pathname, search: search ? "?" + search : "" });
}

/** Call a callback as Dash does when these have changed, ids with properties. */
export function changed(ids, callback, ...given) {
  put.length = 0;
  entries.length = 0;
  window.dash_clientside.callback_context.triggered = ids.map((id) => ({ prop_id: id }));
  return callback(...given);
}

/** A store as Dash gives it back: what went through JSON. */
export const stored = (value) => JSON.parse(JSON.stringify(value));
