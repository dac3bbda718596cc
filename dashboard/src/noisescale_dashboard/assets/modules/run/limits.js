/* Price and limits of a run's recommendation: fields that say what the address says, and an address that says what they say. */
import { LIMITS, QUESTION, RUN } from "../address/address.js";
import { isMissing, isSet, skip, skips, triggers } from "../shell/dash.js";
import { write } from "../shell/history.js";

function shownOf(view, name) {
  if (QUESTION.switches.includes(name)) return Boolean(view[name]);
  return isSet(view, name) ? view[name] : "";
}

export function limitsShown(view) {
  if (!view) return skips(LIMITS.length + 3);
  const given = LIMITS.filter((name) => isSet(view, name));
  return [
    ...LIMITS.map((name) => shownOf(view, name)),
    given.length ? true : skip(),
    given.length ? " · " + given.length + " set" : "",
    QUESTION.prices.some((name) => isSet(view, name)),
  ];
}

/* Buttons come first, then the fields, the view last. */
export function limitsApplied(...given) {
  const by = triggers();
  const view = given[given.length - 1];
  const values = given.slice(-1 - LIMITS.length, -1);
  if (!view || !by.length) return;
  const isCleared = by.includes("run-limits-clear.n_clicks");
  const now = { ...view };
  LIMITS.forEach((name, place) => {
    const value = values[place];
    now[name] = isCleared || isMissing(value) || value === false ? null : Number(value);
  });
  write(RUN.said(now));
}

/* The text that the API wrote for a trainer: into the clipboard where the browser allows it, and onto the page. */
export async function copyFlags(flags) {
  if (!flags) return skips(3);
  if (flags.text === null) return [flags.said, "", true];
  let said = flags.said;
  try {
    await navigator.clipboard.writeText(flags.text);
  } catch {
    said = "The browser does not allow copying here: select the text.";
  }
  return [said, flags.text, false];
}
