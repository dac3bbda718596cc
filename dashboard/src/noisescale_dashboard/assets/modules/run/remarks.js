/* The form with what people say of a run: it shows what is stored, but never overwrites what somebody is writing. */
import { same, skip, skips } from "../shell/dash.js";

const FIELDS = ["name", "tags", "remarks"];
const form = () => document.getElementById("run-edit");

export function remarksShown(said, ...values) {
  if (!said) return skips(FIELDS.length);
  /* a form that was opened before there was anything to show has no name yet: what is empty is filled */
  const isWriting = form() && form().open;
  const isKept = (value, field) =>
    isWriting ? Boolean(values[0] || (value && value.length)) : same(value, said[field]);
  return FIELDS.map((field, place) => (isKept(values[place], field) ? skip() : said[field]));
}

export function remarksSaved(change) {
  if (!change) return ["", true];
  if (form() && !change.words.startsWith("Nothing")) form().removeAttribute("open");
  return [change.words, !change.undo];
}
