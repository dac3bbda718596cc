/* The planner's view, in the address; its sliders, which are set by the server's answer; its sheet on a phone. */
(function () {
  const { skip, same, triggers, write, QUESTION } = window.noisescaleAddress;
  const FOLD = QUESTION.planner, MAIN = FOLD.main.concat("devices");
  const KNOWN = ["bcrit", "bcrit_low", "bcrit_high", "steps", "at", "step_s", "at_devices", "overhead_s", "example_s"];
  const NUMBERS = [...MAIN, ...FOLD.machines, ...FOLD.spot, ...FOLD.worth, ...FOLD.more, ...KNOWN];
  const FLAGS = ["stay", "fixed", "spot"], SLIDERS = MAIN, COSTS = ["usd", "examples", "device_hours"];
  const PLANNER = { project: null, task: null, run: null, target: null, pref: 0.5, y: "usd" };
  NUMBERS.concat(FLAGS).forEach((name) => { PLANNER[name] = null; });
  const HOURS = { min: 1 / 60, h: 1, d: 24 };
  const NO_LIMIT = 100, LAST = 99;
  const FOLDS = { worth: FOLD.worth.concat("fixed"), more: FOLD.more, known: KNOWN };

  const isSet = (view, name) => view[name] !== null && view[name] !== undefined;
  const rounded = (value) => Number(value.toPrecision(3));

  function readPlanner(search) {
    const query = new URLSearchParams(search || ""), said = (key) => query.get(key) || null;
    const number = (key) => (said(key) !== null && Number.isFinite(Number(said(key))) ? Number(said(key)) : null);
    const pref = number("pref"), now = Object.assign({}, PLANNER, { project: said("project"), task: said("task"), run: said("run") });
    NUMBERS.concat("target").forEach((name) => { now[name] = number(name); });
    FLAGS.forEach((name) => { now[name] = said(name) === "1" ? 1 : null; });
    now.pref = pref === null ? PLANNER.pref : Math.min(1, Math.max(0, pref));
    now.y = COSTS.includes(said("y")) ? said("y") : PLANNER.y;
    return now;
  }

  /* Where a slider stands for a value between the ends of what the plan's batches take; the last place is no limit. */
  function placeOf(value, ends) {
    if (value === null || value === undefined || !ends) return NO_LIMIT;
    return Math.round(LAST * Math.min(1, Math.max(0, Math.log(value / ends[0]) / Math.log(ends[1] / ends[0]))));
  }

  function valueAt(place, ends, name) {
    if (place >= NO_LIMIT || !ends) return null;
    const value = rounded(ends[0] * Math.pow(ends[1] / ends[0], place / LAST));
    return name === "devices" ? Math.max(1, Math.round(value)) : value;
  }

  /* What the controls show of a view, by the id and property of each. */
  function shownOf(view, unit) {
    const shown = { "planner-pref.value": view.pref, "planner-y.value": view.y };
    NUMBERS.forEach((name) => { shown["planner-f-" + name + ".value"] = isSet(view, name) ? view[name] : ""; });
    if (isSet(view, "deadline_h")) shown["planner-f-deadline_h.value"] = Number((view.deadline_h / HOURS[unit]).toPrecision(6));
    FLAGS.forEach((name) => { shown["planner-" + name + ".checked"] = Boolean(view[name]); });
    return shown;
  }

  /* The view after what the reader has just done; the view as it is where nothing was done. */
  function changed(view, by, given, unit) {
    const now = Object.assign({}, view);
    by.forEach((id) => {
      const name = id.slice(id.indexOf("-") + 1, id.lastIndexOf(".")), value = given[id];
      if (id === "planner-clear.n_clicks") Object.assign(now, PLANNER, { project: view.project, task: view.task, run: view.run, target: view.target, y: view.y });
      else if (name.startsWith("f-")) now[name.slice(2)] = numberOf(value, name === "f-deadline_h" ? HOURS[unit] : 1, view[name.slice(2)]);
      else if (name.startsWith("s-")) moved(now, name.slice(2), value, given["planner-ranges.data"]);
      else if (FLAGS.includes(name)) now[name] = value ? 1 : null;
      else if (name === "pref" && value !== null && value !== undefined) now.pref = value;
      else if (name === "y" && value) now.y = value;
    });
    return now;
  }

  function numberOf(value, unit, before) {
    if (value === "" || value === null || value === undefined) return null;
    /* what is shown of a value in another unit is rounded: it is not a new one */
    const number = Number(value) * unit;
    /* a field that is left with a sign alone says nothing */
    if (!Number.isFinite(number)) return null;
    return isFinite(before) && before !== null && Math.abs(number / before - 1) < 1e-5 ? before : number;
  }

  function moved(now, name, place, ranges) {
    const ends = ranges && ranges[name];
    if (place === null || place === undefined || !ends || place === placeOf(now[name], ends)) return;
    now[name] = valueAt(place, ends, name);
  }

  function scoped(view, by, given) {
    const scope = given["planner-scope.data"], task = given["planner-task.value"], run = given["planner-run.value"];
    if (!scope) return view;
    if (by.includes("planner-task.value") && task) {
      if (task === scope.chosen.task) return view;
      const [project, name] = task.split("/").map(decodeURIComponent);
      return Object.assign({}, view, { project, task: name, run: null, target: null, bcrit: null, bcrit_low: null, bcrit_high: null });
    }
    if (by.includes("planner-run.value") && scope.kind !== "typed" && run !== null && run !== undefined) {
      return run === scope.chosen.run ? view : Object.assign({}, view, { target: null }, run ? { run, project: null, task: null } : { run: null, project: scope.project, task: scope.task });
    }
    const target = given["planner-target.value"];
    if (by.includes("planner-target.value") && target !== null && target !== undefined) {
      const now = target === "" ? null : Number(target);
      return now === view.target ? view : Object.assign({}, view, { target: now });
    }
    return view;
  }

  function plannerView() {
    const context = window.dash_clientside.callback_context, by = triggers(), given = {};
    context.inputs_list.concat(context.states_list).forEach((one) => { given[one.id + "." + one.property] = one.value; });
    const outputs = context.outputs_list.map((one) => one.id + "." + one.property), unit = given["planner-unit.value"] || "h";
    const answer = (view, shown) => outputs.map((id) => (id === "planner-view.data" ? view : id in shown ? shown[id] : skip()));
    const nothing = answer(skip(), {});
    if (window.location.pathname !== "/planner") return nothing;
    const view = given["planner-view.data"];
    if (!view || by.includes("address.search")) {
      const now = readPlanner(given["address.search"]);
      return view && same(view, now) ? nothing : answer(now, shownOf(now, unit));
    }
    if (by.includes("planner-unit.value")) return answer(skip(), shownOf(view, unit));
    const now = scoped(changed(view, by, given, unit), by, given);
    if (same(view, now)) return nothing;
    const isDragged = by.some((id) => id.startsWith("planner-s-") || id === "planner-pref.value");
    write(now, PLANNER, isDragged);
    return answer(now, shownOf(now, unit));
  }

  /* The plan is asked for once it is known of what: no limit or price makes it another run or task. What is wanted is
     set by set_props: as an output it would close a circle with the scope. */
  function plannerAsked(view, scope, wanted) {
    if (!view) return skip();
    const named = isSet(view, "bcrit") ? ["typed"] : [view.project, view.task, view.run].map((name) => name || null);
    const isOfView = scope && same(scope.named, named), isNew = triggers().includes("planner-scope.data");
    if (isOfView && (isNew || scope.kind !== "nothing")) return { view, scope };
    const isOnItsWay = wanted && same(wanted.named, named) && !isOfView && Date.now() - wanted.at < 10000;
    if (!isOnItsWay) window.dash_clientside.set_props("planner-wanted", { data: { named, view, at: Date.now() } });
    return skip();
  }

  const set = (view, names) => names.filter((name) => isSet(view, name)).length;
  const words = (number) => (number ? " · " + number + " set" : "");

  /* Sliders, and the choices of task and run, are set by set_props: as outputs they would close a circle with the view. */
  function plannerSliders(ranges, view, scope, targets) {
    const ends = ranges || {}, put = (id, value) => window.dash_clientside.set_props("planner-" + id, { value });
    if (!view) return [skip(), ...SLIDERS.map(() => true), true, "", "", "", false];
    SLIDERS.filter((name) => ends[name]).forEach((name) => put("s-" + name, placeOf(view[name], ends[name])));
    if (scope) {
      ["task", "run"].forEach((name) => put(name, scope.chosen[name]));
      const same = (targets || []).find((one) => one.value !== "" && Number(one.value) === view.target);
      put("target", same ? same.value : "");
    }
    return [
      Date.now(), ...SLIDERS.map((name) => !ends[name]), !view.spot,
      words(set(view, FOLDS.worth)), words(set(view, FOLDS.more)), words(set(view, FOLDS.known)),
      FOLDS.worth.some((name) => isSet(view, name)),
    ];
  }

  /* The limits as a sheet from below, on a phone. */
  function sheet(isOpen) {
    const panel = document.getElementById("planner-sheet"), opener = document.querySelector('[data-planner-sheet="open"]');
    if (!panel) return;
    panel.classList.toggle("open", isOpen);
    if (opener) opener.setAttribute("aria-expanded", String(isOpen));
    const first = isOpen ? panel.querySelector("input, button") : opener;
    if (first && first.offsetParent) first.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest ? event.target : null;
    const button = target && target.closest("[data-planner-sheet]");
    if (button) sheet(button.dataset.plannerSheet === "open");
    if (target && target.closest("[data-planner-print]")) window.print();
  });

  document.addEventListener("keydown", (event) => {
    const panel = document.getElementById("planner-sheet");
    if (event.key === "Escape" && panel && panel.classList.contains("open")) sheet(false);
  });

  Object.assign(window.dash_clientside.noisescale, { plannerView, plannerAsked, plannerSliders });
})();
