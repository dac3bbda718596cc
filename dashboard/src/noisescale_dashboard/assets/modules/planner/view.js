/* The planner's view, in the address: from its controls, and what they show of it. */
import { FLAGS, NUMBERS, PLANNER } from "../address/address.js";
import { context, isMissing, isSet, same, setProps, skip, triggers } from "../shell/dash.js";
import { write } from "../shell/history.js";
import { placeOf, valueAt } from "./sliders.js";

const HOURS = { min: 1 / 60, h: 1, d: 24 };
const WANTED_MS = 10000;

/* -- what the controls show -- */

/** Of a view, by the id and property of each control. */
export function shownOf(view, unit) {
  const shown = { "planner-pref.value": view.pref, "planner-y.value": view.y };
  NUMBERS.forEach((name) => {
    shown["planner-f-" + name + ".value"] = isSet(view, name) ? view[name] : "";
  });
  if (isSet(view, "deadline_h")) {
    shown["planner-f-deadline_h.value"] = Number((view.deadline_h / HOURS[unit]).toPrecision(6));
  }
  FLAGS.forEach((name) => {
    shown["planner-" + name + ".checked"] = Boolean(view[name]);
  });
  return shown;
}

/* -- what the reader has done -- */

/** The number of a field in the view's unit; `before` where it says the same. */
export function numberOf(value, unit, before) {
  if (isMissing(value)) return null;
  const number = Number(value) * unit;
  /* a field that is left with a sign alone says nothing */
  if (!Number.isFinite(number)) return null;
  /* what is shown of a value in another unit is rounded: it is not a new one */
  const isSame = before !== null && isFinite(before) && Math.abs(number / before - 1) < 1e-5;
  return isSame ? before : number;
}

function moved(view, name, place, ranges) {
  const ends = ranges && ranges[name];
  if (place === null || place === undefined || !ends || place === placeOf(view[name], ends)) return view;
  return { ...view, [name]: valueAt(place, ends, name) };
}

/* all limits gone; what is planned stays */
function cleared(view) {
  const { project, task, run, target, y } = view;
  return { ...view, ...PLANNER.usual, project, task, run, target, y };
}

/* The view after one control, by its id and property such as "planner-f-steps.value". */
function after(view, id, given, unit) {
  const name = id.slice(id.indexOf("-") + 1, id.lastIndexOf("."));
  const value = given[id];
  if (id === "planner-clear.n_clicks") return cleared(view);
  if (name.startsWith("f-")) {
    const field = name.slice(2);
    return { ...view, [field]: numberOf(value, field === "deadline_h" ? HOURS[unit] : 1, view[field]) };
  }
  if (name.startsWith("s-")) return moved(view, name.slice(2), value, given["planner-ranges.data"]);
  if (FLAGS.includes(name)) return { ...view, [name]: value ? 1 : null };
  if (name === "pref" && value !== null && value !== undefined) return { ...view, pref: value };
  return name === "y" && value ? { ...view, y: value } : view;
}

function ofTask(view, chosen) {
  const [project, task] = chosen.split("/").map(decodeURIComponent);
  return { ...view, project, task, run: null, target: null, bcrit: null, bcrit_low: null, bcrit_high: null };
}

function ofRun(view, run, scope) {
  const of = run ? { run, project: null, task: null } : { run: null, project: scope.project, task: scope.task };
  return { ...view, target: null, ...of };
}

/* The view of what is chosen: a task, a run or a target. */
function scoped(view, by, given) {
  const [scope, task, run, target] = ["scope.data", "task.value", "run.value", "target.value"].map(
    (id) => given["planner-" + id],
  );
  if (!scope) return view;
  if (by.includes("planner-task.value") && task) {
    return task === scope.chosen.task ? view : ofTask(view, task);
  }
  if (by.includes("planner-run.value") && scope.kind !== "typed" && run !== null && run !== undefined) {
    return run === scope.chosen.run ? view : ofRun(view, run, scope);
  }
  if (by.includes("planner-target.value") && target !== null && target !== undefined) {
    return { ...view, target: target === "" ? null : Number(target) };
  }
  return view;
}

/* -- callbacks -- */

function answer(view, shown) {
  return context().outputs_list.map(({ id, property }) => {
    const said = id + "." + property;
    if (said === "planner-view.data") return view;
    return said in shown ? shown[said] : skip();
  });
}

export function plannerView() {
  const { inputs_list: inputs, states_list: states } = context();
  const given = Object.fromEntries(inputs.concat(states).map((one) => [one.id + "." + one.property, one.value]));
  const by = triggers();
  const unit = given["planner-unit.value"] || "h";
  const view = given["planner-view.data"];
  if (window.location.pathname !== "/planner") return answer(skip(), {});
  if (!view || by.includes("address.search")) {
    const now = PLANNER.read(given["address.search"]);
    return view && same(view, now) ? answer(skip(), {}) : answer(now, shownOf(now, unit));
  }
  if (by.includes("planner-unit.value")) return answer(skip(), shownOf(view, unit));
  const set = by.reduce((so, id) => after(so, id, given, unit), view);
  const now = scoped(set, by, given);
  if (same(view, now)) return answer(skip(), {});
  const isDragged = by.some((id) => id.startsWith("planner-s-") || id === "planner-pref.value");
  write(PLANNER.said(now), isDragged);
  return answer(now, shownOf(now, unit));
}

/* The plan is asked for once it is known of what: no limit or price makes it another run or task. What is wanted is
   set by set_props: as an output it would close a circle with the scope. */
export function plannerAsked(view, scope, wanted) {
  if (!view) return skip();
  const named = isSet(view, "bcrit") ? ["typed"] : [view.project, view.task, view.run].map((name) => name || null);
  const isOfView = scope && same(scope.named, named);
  const isNew = triggers().includes("planner-scope.data");
  if (isOfView && (isNew || scope.kind !== "nothing")) return { view, scope };
  const isOnItsWay = wanted && same(wanted.named, named) && !isOfView && Date.now() - wanted.at < WANTED_MS;
  if (!isOnItsWay) setProps("planner-wanted", { data: { named, view, at: Date.now() } });
  return skip();
}
