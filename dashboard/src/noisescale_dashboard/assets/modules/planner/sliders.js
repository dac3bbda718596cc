/* The planner's sliders, which are set by the server's answer, and how many fields are set in each fold. */
import { FOLDS, SLIDERS } from "../address/address.js";
import { isSet, setProps, skips } from "../shell/dash.js";

const NO_LIMIT = 100;
const LAST = 99;

/** Where a slider stands for a value between the ends of what the plan's batches take; the last place is no limit. */
export function placeOf(value, ends) {
  if (value === null || value === undefined || !ends) return NO_LIMIT;
  const share = Math.log(value / ends[0]) / Math.log(ends[1] / ends[0]);
  return Math.round(LAST * Math.min(1, Math.max(0, share)));
}

/** The value that a slider stands for: three digits, whole devices; null for no limit. */
export function valueAt(place, ends, name) {
  if (place >= NO_LIMIT || !ends) return null;
  const value = Number((ends[0] * Math.pow(ends[1] / ends[0], place / LAST)).toPrecision(3));
  return name === "devices" ? Math.max(1, Math.round(value)) : value;
}

function numSet(view, names) {
  const count = names.filter((name) => isSet(view, name)).length;
  return count ? " · " + count + " set" : "";
}

function put(id, value) {
  setProps("planner-" + id, { value });
}

function putChoices(view, scope, targets) {
  ["task", "run"].forEach((name) => put(name, scope.chosen[name]));
  const chosen = (targets || []).find((one) => one.value !== "" && Number(one.value) === view.target);
  put("target", chosen ? chosen.value : "");
}

/* Sliders, and the choices of task and run, are set by set_props: as outputs they would close a circle with the view. */
export function plannerSliders(ranges, view, scope, targets) {
  const ends = ranges || {};
  if (!view) return [...skips(1), ...SLIDERS.map(() => true), true, "", "", "", false];
  SLIDERS.filter((name) => ends[name]).forEach((name) => put("s-" + name, placeOf(view[name], ends[name])));
  if (scope) putChoices(view, scope, targets);
  return [
    Date.now(),
    ...SLIDERS.map((name) => !ends[name]),
    !view.spot,
    numSet(view, FOLDS.worth),
    numSet(view, FOLDS.more),
    numSet(view, FOLDS.known),
    FOLDS.worth.some((name) => isSet(view, name)),
  ];
}
