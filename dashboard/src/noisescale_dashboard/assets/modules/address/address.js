/* The address of every page holds all of its view, what is as usual left out. */
import { address, choice, flag, number, numberOf, numeral, onOff, share, text } from "./fields.js";
import { namedSlots, slotsOf } from "./slots.js";

const each = (names, field) => Object.fromEntries(names.map((name) => [name, field]));

/** Price and limits of a recommendation by the API's words, and the Planner's; written by question_fields.py. */
export const QUESTION = JSON.parse(document.documentElement.dataset.question);
export const LIMITS = QUESTION.fields;

/** Pages whose own view says the project; on the others it only stands in the address. */
export const OWN_PROJECT = ["/", "/runs", "/compare", "/planner", "/sweeps"];

/* -- overview -- */

export const OVERVIEW = address({
  scope: choice(["running", "7d", "30d"]),
  pref: choice(["0.2", "0.5", "0.8"], "0.5"),
  project: text(),
});

/* -- runs -- */

export const RANGES = ["batch_min", "batch_max", "noise_min", "noise_max"];
const DECISIONS = ["increase", "decrease", "probably_increase", "probably_decrease", "keep", "keep_for_now"];

export const RUNS = address({
  q: text(""),
  project: text(),
  task: text(),
  group: text(),
  status: text(),
  decision: choice([...DECISIONS, "insufficient_evidence"], null),
  tag: text(""),
  since: choice(["24h", "7d", "30d", "90d", "any"], "90d"),
  shelf: choice(["current", "archived"]),
  where: text(""),
  trials: choice(["fold", "hide", "show"]),
  open: text(""),
  cols: text(""),
  sort: text("-misfit"),
  ...each(RANGES, number()),
  view: text(),
});

/** Ids of the runs that are chosen in the list: they stand beside its view. */
export const CHOSEN = {
  read: (search) => (new URLSearchParams(search || "").get("sel") || "").split(",").filter(Boolean),
  /** The address `search` with these ids instead of its own. */
  said(search, ids) {
    const query = new URLSearchParams(search || "");
    query.delete("sel");
    return [query.toString(), ids.length ? "sel=" + ids.join(",") : ""].filter(Boolean).join("&");
  },
};

/* Names of columns in one word of the address; a comma inside a name is written as %2C. */
export const joined = (names) => (names || []).map((name) => name.replace(/%/g, "%25").replace(/,/g, "%2C")).join(",");
export const split = (word) =>
  word ? word.split(",").map((name) => name.replace(/%2C/gi, ",").replace(/%25/g, "%")) : [];

/* -- a run -- */

export const RUN_SWITCHES = ["linked", "envelope", "outside"];
const SIMPLE = "simple";
const WINDOW = { usual: "auto", read: (word) => (numberOf(word) === null ? "auto" : String(numberOf(word))) };

export const RUN = address(
  {
    x: choice(["step", "units", "time", "loss"]),
    w: WINDOW,
    from: number(),
    to: number(),
    layer: text(),
    kind: choice([SIMPLE, "adam", "sign", "spectral", "hessian"]),
    pref: share(0.5),
    show: choice(["terms", "efficiency"]),
    layers: choice(["map", "rank"]),
    term: choice(["noise", "trace_cov", "grad_sq_norm"]),
    part: choice(["figures", "layers", "data", "config"]),
    linked: onOff(true),
    envelope: onOff(true),
    outside: onOff(false),
    ...each(LIMITS, number()),
  },
  /* layers are measured of kind simple only */
  (view) => (view.kind === SIMPLE ? view : { ...view, layer: null }),
);

/* -- sweeps -- */

export const SWEEP = address({ target: numeral(), regimes: choice(["fit", "slopes"]) });
export const SWEEPS = address({ tab: choice(["own", "published"]), workload: text(), project: text() });

/* -- time and cost -- */

export const COST = address({
  tab: choice(["ImageNet", "CIFAR10", "SQuAD", "own", "growth"]),
  project: text(),
  task: text(),
  metric: text(),
  target: number(),
  goal: choice(["min", "max"]),
  price: number(),
  spot: number(),
});

/* -- planner -- */

const FOLD = QUESTION.planner;
/** Fields with a slider each. */
export const SLIDERS = FOLD.main.concat("devices");
const KNOWN = ["bcrit", "bcrit_low", "bcrit_high", "steps", "at", "step_s", "at_devices", "overhead_s", "example_s"];
export const FLAGS = ["stay", "fixed", "spot"];
/** Fields of numbers. */
export const NUMBERS = [...SLIDERS, ...FOLD.machines, ...FOLD.spot, ...FOLD.worth, ...FOLD.more, ...KNOWN];
/** What can be folded away, by the name of the fold. */
export const FOLDS = { worth: FOLD.worth.concat("fixed"), more: FOLD.more, known: KNOWN };

export const PLANNER = address({
  project: text(),
  task: text(),
  run: text(),
  target: number(),
  pref: share(0.5),
  y: choice(["usd", "examples", "device_hours"]),
  ...each(NUMBERS, number()),
  ...each(FLAGS, flag()),
});

/* -- comparison -- */

export const COMPARE_TABS = ["runs", "config", "tasks"];
const COMPARE_WORDS = address({
  tab: choice(COMPARE_TABS, null),
  runs: text(""),
  colors: text(),
  x: choice(["step", "units", "time", "loss"]),
  y: choice(["noise", "loss", "batch", "efficiency"]),
  project: text(),
  task: text(),
  size: text("num_parameters"),
  same: onOff(false),
  base: text(),
});
const usualTab = (runs) => (runs.length ? "runs" : "tasks");

export const COMPARE = {
  read(search) {
    const words = COMPARE_WORDS.read(search);
    const ids = words.runs.split(",").map((id) => id.trim());
    const runs = Array.from(new Set(ids.filter(Boolean)));
    return {
      ...words,
      tab: words.tab || usualTab(runs),
      runs,
      colors: slotsOf(runs, namedSlots(runs, words.colors)),
    };
  },
  /* Colours stand in the address where they are not those that the ids alone would give. */
  said(view) {
    const isUsual = JSON.stringify(slotsOf(view.runs, {})) === JSON.stringify(view.colors);
    return COMPARE_WORDS.said({
      ...view,
      tab: view.tab === usualTab(view.runs) ? null : view.tab,
      runs: view.runs.join(","),
      colors: isUsual ? null : view.colors.map((slot) => (slot === null ? "-" : slot)).join(""),
    });
  },
};
