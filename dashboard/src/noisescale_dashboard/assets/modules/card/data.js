/* The data of a card as rows, as a file, as text in a table. */
import { plotOf, words } from "./parts.js";

/** Rows of the card's data, names first: what its figure brings, else its table as it is written. */
export function rowsOf(card) {
  const plot = plotOf(card);
  if (!plot) {
    const cells = (row) => Array.from(row.cells).map((cell) => cell.innerText.replace(/\s+/g, " ").trim());
    return Array.from(card.querySelectorAll("table tr")).map(cells);
  }
  const meta = plot.layout && plot.layout.meta;
  return rowsOfColumns((meta && meta.columns) || []);
}

/** Columns, each a name and its values, as rows. */
export function rowsOfColumns(columns) {
  const length = columns.length ? columns[0][1].length : 0;
  const rows = Array.from({ length }, (_, place) => columns.map(([, values]) => values[place]));
  return [columns.map(([name]) => name), ...rows];
}

/** A cell of a CSV file. */
export function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  /* a spreadsheet must not run what someone has called a layer; a number with its sign stays one */
  const safe = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? "'" + value : value;
  return /[",\n\r]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
}

export const csvOf = (rows) => rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";

/** Column by column, with what the card says of them and the address of the view. */
export function jsonOf(card) {
  const [names, ...rows] = rowsOf(card);
  const columns = Object.fromEntries(names.map((name, place) => [name, rows.map((row) => row[place])]));
  const about = {
    title: words(card, ".tt"),
    subtitle: words(card, ".st"),
    of: words(document, ".crumb-end"),
    address: window.location.href,
    at: new Date().toISOString(),
  };
  return JSON.stringify({ ...about, columns }, null, 1);
}

/** A cell of the table on the page. */
export function shownCell(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  return Number(value.toPrecision(5)).toLocaleString("en-US", { maximumSignificantDigits: 5 });
}
