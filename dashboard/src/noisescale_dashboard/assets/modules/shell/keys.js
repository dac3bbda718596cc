/* Keys for what can also be clicked; none while someone types or while a dialog is open. */
import { closeButton, closestOf, dialogOf, element } from "./page.js";

/* s is Sweeps, which people open more often than Settings */
const PAGES = { o: "/", r: "/runs", c: "/compare", s: "/sweeps", p: "/planner", ",": "/settings" };
const HELP = [
  ["g, then o, r, c, s, p or ,", "go to Overview, Runs, Compare, Sweeps, Planner or Settings"],
  ["/", "search"],
  ["j, k, x, c, Enter", "in Runs: next, previous, choose, compare what is chosen, open"],
  ["[, ]", "on a run: the one before or after it in the list"],
  ["e", "menu of the card under the pointer, or of the first one"],
  ["t", "light or dark"],
  ["Esc", "close; release a pinned moment"],
  ["?", "this list"],
];
/* a chosen value is not typed: what is chosen from a closed list, ticked or picked leaves the keys to the page */
const TYPED = "input:not([readonly], [type=checkbox], [type=radio]), input[aria-expanded=true], textarea, select";
const FIELDS = TYPED + ", [contenteditable], [role=listbox], [role=slider], dialog";
let waitsForPage = false;

function openMenu() {
  const menu = document.querySelector(".card:hover .card-menu") || document.querySelector(".card .card-menu");
  if (!menu) return;
  menu.setAttribute("open", "");
  menu.querySelector("button").focus();
}

function showHelp() {
  const dialog = dialogOf("as-table keys", "keys-title", "Keys");
  const list = element("dl");
  HELP.forEach(([key, meaning]) => list.append(element("dt", "", key), element("dd", "", meaning)));
  dialog.append(list, closeButton(dialog));
  dialog.showModal();
}

function search() {
  const fields = Array.from(document.querySelectorAll(".search input, input.search"));
  const shown = fields.find((one) => one.offsetParent);
  if (shown) shown.focus();
}

function goTo(letter) {
  const link = PAGES[letter] && document.querySelector('.nav a[href="' + PAGES[letter] + '"]');
  if (link) link.click();
}

const KEYS = { "/": search, e: openMenu, t: () => document.getElementById("theme-toggle").click(), "?": showHelp };

/** Whether a key is the browser's, or that of a field that someone types in. */
export const isTaken = (event) =>
  event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || Boolean(closestOf(event, FIELDS));

function pressed(event) {
  if (isTaken(event)) return;
  if (waitsForPage) {
    waitsForPage = false;
    /* the letter means nothing else now: c would also compare the chosen runs */
    event.preventDefault();
    goTo(event.key);
  } else if (event.key === "g") {
    waitsForPage = true;
    window.setTimeout(() => {
      waitsForPage = false;
    }, 1500);
  } else if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

export const watchKeys = () => document.addEventListener("keydown", pressed);
