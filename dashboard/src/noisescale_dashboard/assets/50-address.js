/* The address holds all of a view, defaults left out. A choice makes a new entry of the history, a drag or zoom replaces it. */
(function () {
  const skip = () => window.dash_clientside.no_update;
  const RUNS = {
    q: "", project: null, task: null, group: null, status: null, decision: null, tag: "", since: "90d", shelf: "current", cols: "", sort: "-misfit",
    batch_min: null, batch_max: null, noise_min: null, noise_max: null, view: null, page: 0,
  };
  const RANGES = ["batch_min", "batch_max", "noise_min", "noise_max"], DECISIONS = ["increase", "decrease", "probably_increase", "probably_decrease", "keep", "keep_for_now", "insufficient_evidence"];
  const SINCE = ["24h", "7d", "30d", "90d", "any"], SHELVES = ["current", "archived"];
  const RUN = {
    x: "step", w: "auto", from: null, to: null, layer: null, kind: "simple", pref: 0.5, show: "terms", layers: "map", term: "noise", part: "figures",
    linked: true, envelope: true, outside: false,
  };
  /* Price and limits of the recommendation, by the API's words; null where the reader has said nothing. */
  const QUESTION = JSON.parse(document.documentElement.dataset.question), LIMITS = QUESTION.fields;
  LIMITS.forEach((name) => { RUN[name] = null; });
  const RUN_CHOICES = {
    x: ["step", "units", "time", "loss"], kind: ["simple", "adam", "sign", "spectral", "hessian"], show: ["terms", "efficiency"],
    layers: ["map", "rank"], term: ["noise", "trace_cov", "grad_sq_norm"], part: ["figures", "layers", "data", "config"],
  };
  const RUN_SWITCHES = ["linked", "envelope", "outside"];
  /* Fields that are written letter by letter: each letter is not an entry of the history. */
  const TYPED = ["q", "tag", ...RANGES].map((key) => "runs-" + key + ".value");
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  function triggers() {
    return window.dash_clientside.callback_context.triggered.map((t) => t.prop_id);
  }

  /* The query part of a view's address. */
  function said(view, defaults) {
    const query = new URLSearchParams();
    Object.keys(defaults).forEach((key) => {
      const value = view[key];
      if (key !== "page" && value !== null && value !== "" && value !== defaults[key]) query.set(key, typeof value === "boolean" ? Number(value) : value);
    });
    return query.toString();
  }

  function write(view, defaults, replace) {
    /* what is asked for now is waited for */
    delete document.documentElement.dataset.quiet;
    const query = said(view, defaults);
    const url = window.location.pathname + (query ? "?" + query : "");
    if (url === window.location.pathname + window.location.search) return;
    window.history[replace ? "replaceState" : "pushState"](null, "", url);
    /* the view is known already: those who read the address can wait until what a drag asks for is under way */
    const tell = () => window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    if (replace) window.setTimeout(tell, 400); else tell();
  }

  /* what the views of other pages are made of, too */
  window.noisescaleAddress = { skip, same, triggers, said, write, RUN, RUNS, LIMITS, QUESTION };

  function readRuns(search) {
    const query = new URLSearchParams(search || ""), one = (key, known) => (known.includes(query.get(key)) ? query.get(key) : RUNS[key]);
    const number = (key) => (query.get(key) && Number.isFinite(Number(query.get(key))) ? Number(query.get(key)) : null);
    return Object.assign({}, RUNS, {
      q: query.get("q") || "", project: query.get("project"), task: query.get("task"), group: query.get("group"),
      status: query.get("status"), decision: one("decision", DECISIONS), tag: query.get("tag") || "",
      since: one("since", SINCE), shelf: one("shelf", SHELVES), cols: query.get("cols") || "", sort: query.get("sort") || RUNS.sort,
      view: query.get("view"),
    }, Object.fromEntries(RANGES.map((key) => [key, number(key)])));
  }

  function readRun(search) {
    const query = new URLSearchParams(search || "");
    const number = (key) => (query.get(key) !== null && Number.isFinite(Number(query.get(key))) ? Number(query.get(key)) : null);
    const one = (key) => (RUN_CHOICES[key].includes(query.get(key)) ? query.get(key) : RUN[key]);
    const pref = number("pref"), kind = one("kind");
    return Object.assign({}, RUN, Object.fromEntries(Object.keys(RUN_CHOICES).map((key) => [key, one(key)])), {
      w: number("w") === null ? RUN.w : String(number("w")),
      from: number("from"), to: number("to"), layer: kind === RUN.kind ? query.get("layer") : null,
      pref: pref === null ? RUN.pref : Math.min(1, Math.max(0, pref)),
    }, Object.fromEntries(RUN_SWITCHES.map((key) => [key, query.has(key) ? query.get(key) === "1" : RUN[key]])),
    Object.fromEntries(LIMITS.map((name) => [name, query.get(name) === "" ? null : number(name)])));
  }

  /* Names of columns in one word of the address; a comma inside a name is written as %2C. */
  const joined = (names) => (names || []).map((name) => name.replace(/%/g, "%25").replace(/,/g, "%2C")).join(",");
  const split = (word) => (word ? word.split(",").map((name) => name.replace(/%2C/gi, ",").replace(/%25/g, "%")) : []);

  /* The controls of the list, in the order of the callback's inputs and, after the view, of its outputs. */
  const RUNS_CONTROLS = ["q", "project", "task", "group", "status", "decision", "tag", "since", "shelf", "cols", "order", ...RANGES];

  function runsView(search, ...given) {
    const by = triggers(), values = given.splice(0, RUNS_CONTROLS.length), [sort, , , view, cursors] = given;
    const nothing = Array(1 + RUNS_CONTROLS.length).fill(skip());
    if (window.location.pathname !== "/runs") return nothing;
    const known = view || null, alone = (changed) => [changed].concat(nothing.slice(1));
    if (!known || by.includes("address.search")) {
      const now = readRuns(search);
      if (known && same(Object.assign({}, known, { page: 0 }), now)) return nothing;
      const shown = (key) => (key === "cols" ? split(now.cols) : key === "order" ? now.sort : RANGES.includes(key) && now[key] === null ? "" : now[key]);
      return [now, ...RUNS_CONTROLS.map(shown)];
    }
    const turn = by.includes("runs-next.n_clicks") ? 1 : by.includes("runs-previous.n_clicks") ? -1 : 0;
    if (turn) return alone(Object.assign({}, known, { page: Math.min(Math.max(0, known.page + turn), cursors.length - 1) }));
    const now = Object.assign({}, RUNS);
    RUNS_CONTROLS.forEach((key, i) => {
      const value = values[i];
      if (key === "cols") now.cols = joined(value);
      else if (key !== "order") now[key] = value === null || value === undefined || value === "" ? RUNS[key] : value;
    });
    const order = values[RUNS_CONTROLS.indexOf("order")];
    now.sort = (by.includes("runs-sort.data") ? sort : by.includes("runs-order.value") && order ? order : known.sort) || RUNS.sort;
    if (same(Object.assign({}, known, { page: 0, view: null }), now)) return nothing;
    write(now, RUNS, by.some((id) => TYPED.includes(id)));
    return alone(now).map((output, i) => (RUNS_CONTROLS[i - 1] === "order" ? now.sort : output));
  }

  /* What the list of a view is as a file: the same words as in the address. */
  const runsExport = (view) => (view ? "/exports/runs.csv?" + said(view, RUNS) : skip());

  /* Steps that a zoomed range of the x axis covers, read from the points that are drawn. */
  function zoomed(relayout, figures, kind) {
    if (!relayout) return undefined;
    if (relayout["xaxis.autorange"]) return { from: null, to: null };
    const ends = relayout["xaxis.range"] || [relayout["xaxis.range[0]"], relayout["xaxis.range[1]"]];
    if (ends[0] === undefined || ends[1] === undefined) return undefined;
    const low = Math.min(ends[0], ends[1]), high = Math.max(ends[0], ends[1]);
    if (kind === "step") return { from: Math.max(0, Math.floor(low)), to: Math.ceil(high) };
    const batch = figures && window.noisescaleTheme.figureOf(figures.noise).data.find((trace) => trace.name === "batch");
    if (!batch) return undefined;
    const steps = batch.x.map((x, i) => (x !== null && x >= low && x <= high ? batch.customdata[i][2] : null)).filter((s) => s !== null);
    if (!steps.length) return undefined;
    return { from: Math.min(...steps), to: Math.max(...steps) };
  }

  /* The controls of a run's page, in the order of the callback's inputs and, after the stores, of its outputs. */
  const RUN_CONTROLS = ["x", "kind", "w", "pref", "layer", "show", "layers", "term", "part", ...RUN_SWITCHES];
  const RUN_FIGURES = ["noise", "terms", "loss"];

  /* The page's view: from its address at first and after back and forward, later from its controls. */
  function runView(search, ...given) {
    const by = triggers(), values = given.splice(0, RUN_CONTROLS.length), [view, windows] = given;
    const nothing = Array(4 + RUN_CONTROLS.length).fill(skip());
    if (!window.location.pathname.startsWith("/runs/")) return nothing;
    const shown = (v) => RUN_CONTROLS.map((key) => (key === "w" ? Math.max(0, windows.indexOf(v.w)) : v[key]));
    if (!view || by.includes("address.search")) {
      const now = readRun(search);
      return view && same(view, now) ? nothing : stores(view, now).concat(shown(now));
    }
    const now = Object.assign({}, view);
    RUN_CONTROLS.forEach((key, i) => {
      const value = key === "w" ? windows[values[i]] : values[i];
      now[key] = value === null || value === undefined || value === "" ? RUN[key] : value;
    });
    /* layers are measured of kind simple only: the choice made last counts */
    if (now.layer && now.kind !== RUN.kind) Object.assign(now, by.includes("run-layer.value") ? { kind: RUN.kind } : { layer: null });
    if (same(view, now)) return nothing;
    write(now, RUN, by.includes("run-pref.value"));
    const said = shown(now);
    return stores(view, now).concat(said.map((value, i) => (same(value, values[i] === undefined ? null : values[i]) ? skip() : value)));
  }

  /* A dragged range, apart from the controls: Dash draws whatever a callback may set once more when that begins and ends. */
  function runZoomed(...given) {
    const by = triggers(), relayouts = given.splice(0, RUN_FIGURES.length), [view, figures] = given;
    const dragged = RUN_FIGURES.find((name) => by.includes("run-" + name + ".relayoutData")), nothing = Array(4).fill(skip());
    /* a figure that is not linked zooms alone, in the points it has; the main one asks for finer ones */
    if (!view || !dragged || (!view.linked && dragged !== "noise")) return nothing;
    const range = zoomed(relayouts[RUN_FIGURES.indexOf(dragged)], figures, dragged === "loss" && view.x === "loss" ? "step" : view.x);
    const now = Object.assign({}, view, range);
    if (!range || same(view, now)) return nothing;
    write(now, RUN, true);
    return stores(view, now);
  }

  /* One store for each callback that reads the view, so that a moved slider does not fetch the series again. */
  function stores(before, now) {
    const pick = (v, keys) => (v ? keys.map((key) => v[key]) : null);
    const changed = (keys) => !before || !same(pick(before, keys), pick(now, keys));
    const part = (keys) => (changed(keys) ? Object.fromEntries(keys.map((key) => [key, now[key]])) : skip());
    const range = now.linked ? { from: now.from, to: now.to } : { from: null, to: null };
    const layers = { ...range, layers: now.layers, term: now.term };
    return [
      now,
      part(["x", "w", "from", "to", "layer", "kind", "show", ...RUN_SWITCHES]),
      part(["pref", ...LIMITS]),
      changed(["from", "to", "linked", "layers", "term"]) ? layers : skip(),
    ];
  }

  /* A button that turns a switch of the page on, such as "Show them". */
  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-checks]");
    if (button) window.dash_clientside.set_props(button.dataset.checks, { checked: true });
  });

  /* Links between pages keep what is loaded. */
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[data-go]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    window.history.pushState(null, "", link.getAttribute("href"));
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.scrollTo(0, 0);
  });

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.noisescale = Object.assign(window.dash_clientside.noisescale || {}, { runsView, runsExport, runView, runZoomed });
})();
