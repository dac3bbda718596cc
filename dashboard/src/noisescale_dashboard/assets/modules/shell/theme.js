/* Light and dark: tokens are CSS variables. Narrow: figures take it as data. */
import { context, setProps } from "./dash.js";

const CHOSEN = "mantine-color-scheme-value";
const ATTRIBUTE = "data-mantine-color-scheme";
let isWatching = false;

/** The theme that is shown, "light" or "dark". */
export const currentTheme = () => document.documentElement.getAttribute(ATTRIBUTE) || "light";
const paint = (theme) => document.documentElement.setAttribute(ATTRIBUTE, theme);

function tellOfWidth(narrow) {
  let said = narrow.matches;
  let timer;
  /* printing makes the page narrow for a moment: nothing is drawn again for that */
  narrow.addEventListener("change", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      if (narrow.matches === said) return;
      said = narrow.matches;
      setProps("narrow", { data: said });
    }, 200);
  });
}

function followSystem() {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (window.localStorage.getItem(CHOSEN)) return;
    paint(event.matches ? "dark" : "light");
    setProps("theme", { data: currentTheme() });
  });
}

export function watchWidth() {
  const narrow = window.matchMedia("(max-width: 860px)");
  if (!isWatching) {
    isWatching = true;
    tellOfWidth(narrow);
    followSystem();
  }
  return narrow.matches;
}

export function switchTheme(clicks, shown) {
  if (!clicks || !context().triggered.length) return currentTheme();
  const next = (shown || currentTheme()) === "dark" ? "light" : "dark";
  window.localStorage.setItem(CHOSEN, next);
  paint(next);
  return next;
}
