/* The menu of a card: its figure as a picture, its data as a file or a table, the link to the view, how it is computed. */
import { closeButton, closestOf, dialogOf, element } from "../shell/page.js";
import { csvOf, jsonOf, rowsOf, shownCell } from "./data.js";
import { saveOf, words } from "./parts.js";
import { savePng, saveSvg } from "./picture.js";

const saveCsv = (card) => saveOf(card, csvOf(rowsOf(card)), "text/csv;charset=utf-8", "csv");
const saveJson = (card) => saveOf(card, jsonOf(card), "application/json", "json");

function tableOf([names, ...rows]) {
  const table = element("table", "tb");
  const head = table.createTHead().insertRow();
  const body = table.createTBody();
  names.forEach((name) => head.appendChild(Object.assign(element("th", "", name), { scope: "col" })));
  rows.forEach((row) => {
    const line = body.insertRow();
    row.forEach((value) => {
      line.insertCell().textContent = shownCell(value);
    });
  });
  return table;
}

function showTable(card) {
  const dialog = dialogOf("as-table", "as-table-title", words(card, ".tt"));
  const rows = rowsOf(card);
  const inside = element("div", "scroll");
  inside.tabIndex = 0;
  inside.appendChild(tableOf(rows));
  const bar = element("div", "row");
  const file = element("button", "btn", "Data as CSV");
  const close = closeButton(dialog);
  file.addEventListener("click", () => saveCsv(card));
  const count = rows.length - 1 + (rows.length === 2 ? " row" : " rows");
  bar.append(element("span", "dim", count), element("span", "sp"), file, close);
  dialog.append(element("p", "st", words(card, ".st")), inside, bar);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.showModal();
  close.focus();
}

async function copyLink(card, button) {
  const before = Array.from(button.childNodes);
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(window.location.href);
  } catch {
    said = "Copy it from the address bar";
  }
  button.textContent = said;
  window.setTimeout(() => button.replaceChildren(...before), 1500);
}

/* The text stands in the menu's place until it is closed; then the menu is itself again. */
function explain(card, button) {
  const menu = button.closest("details");
  menu.classList.add("explains");
  menu.querySelector(".how-computed").focus();
}

const STAYS_OPEN = ["link", "how"];
const ACTIONS = {
  png: savePng,
  svg: saveSvg,
  csv: saveCsv,
  json: saveJson,
  table: showTable,
  link: copyLink,
  how: explain,
};

function chosen(event) {
  const button = closestOf(event, "[data-card-action]");
  if (!button) return;
  const action = button.dataset.cardAction;
  ACTIONS[action](button.closest(".card"), button);
  if (STAYS_OPEN.includes(action)) return;
  const menu = button.closest("details");
  menu.removeAttribute("open");
  if (action !== "table") menu.querySelector("summary").focus();
}

export function watchMenus() {
  document.addEventListener("click", chosen);
  const closed = (event) => {
    if (!event.target.open) event.target.classList.remove("explains");
  };
  document.addEventListener("toggle", closed, true);
}
