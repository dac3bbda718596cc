/* The address holds all of a view, defaults left out. A choice makes a new entry of the history, a drag or zoom replaces it. */
(function () {
  const skip = () => window.dash_clientside.no_update;
  const RUNS = { q: "", project: null, task: null, group: null, status: null, tag: "", since: "90d", shelf: "current", cols: "", sort: "-misfit", page: 0 };
  const SINCE = ["24h", "7d", "30d", "90d", "any"], SHELVES = ["current", "archived"];
  const RUN = { x: "step", w: "auto", from: null, to: null, layer: null, kind: "simple", pref: 0.5 };
  /* Price and limits of the recommendation, by the API's words; null where the reader has said nothing. */
  const LIMITS = [
    "examples_per_step", "usd_per_hour_sooner", "max_hours", "max_steps", "max_usd", "max_examples", "num_devices",
    "examples_per_device", "max_micro_batches", "usd_per_device_hour",
  ];
  LIMITS.forEach((name) => { RUN[name] = null; });
  const X_CHOICES = ["step", "units", "time", "loss"];
  const KINDS = ["simple", "adam", "sign", "spectral", "hessian"];
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  function triggers() {
    return window.dash_clientside.callback_context.triggered.map((t) => t.prop_id);
  }

  function write(view, defaults, replace) {
    const query = new URLSearchParams();
    Object.keys(defaults).forEach((key) => {
      const value = view[key];
      if (key !== "page" && value !== null && value !== "" && value !== defaults[key]) query.set(key, value);
    });
    const said = query.toString();
    const url = window.location.pathname + (said ? "?" + said : "");
    if (url === window.location.pathname + window.location.search) return;
    window.history[replace ? "replaceState" : "pushState"](null, "", url);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  }

  /* what the views of other pages are made of, too */
  window.noisescaleAddress = { skip, same, triggers, write, RUN, LIMITS };

  function readRuns(search) {
    const query = new URLSearchParams(search || ""), one = (key, known) => (known.includes(query.get(key)) ? query.get(key) : RUNS[key]);
    return Object.assign({}, RUNS, {
      q: query.get("q") || "", project: query.get("project"), task: query.get("task"), group: query.get("group"),
      status: query.get("status"), tag: query.get("tag") || "",
      since: one("since", SINCE), shelf: one("shelf", SHELVES), cols: query.get("cols") || "", sort: query.get("sort") || RUNS.sort,
    });
  }

  function readRun(search) {
    const query = new URLSearchParams(search || "");
    const number = (key) => (query.get(key) !== null && Number.isFinite(Number(query.get(key))) ? Number(query.get(key)) : null);
    const pref = number("pref"), kind = KINDS.includes(query.get("kind")) ? query.get("kind") : RUN.kind;
    return Object.assign({}, RUN, {
      x: X_CHOICES.includes(query.get("x")) ? query.get("x") : RUN.x,
      w: number("w") === null ? RUN.w : String(number("w")),
      from: number("from"), to: number("to"), kind, layer: kind === RUN.kind ? query.get("layer") : null,
      pref: pref === null ? RUN.pref : Math.min(1, Math.max(0, pref)),
    }, Object.fromEntries(LIMITS.map((name) => [name, query.get(name) === "" ? null : number(name)])));
  }

  /* Names of columns in one word of the address; a comma inside a name is written as %2C. */
  const joined = (names) => (names || []).map((name) => name.replace(/%/g, "%25").replace(/,/g, "%2C")).join(",");
  const split = (word) => (word ? word.split(",").map((name) => name.replace(/%2C/gi, ",").replace(/%25/g, "%")) : []);

  function runsView(search, q, project, task, group, status, tag, since, shelf, cols, order, sort, back, next, view, cursors) {
    const by = triggers(), nothing = Array(11).fill(skip());
    if (window.location.pathname !== "/runs") return nothing;
    const known = view || null;
    let now;
    if (!known || by.includes("address.search")) {
      now = readRuns(search);
      if (known && same(Object.assign({}, known, { page: 0 }), now)) return nothing;
      return [now, now.q, now.project, now.task, now.group, now.status, now.tag, now.since, now.shelf, split(now.cols), now.sort];
    }
    const alone = (changed) => [changed].concat(Array(10).fill(skip()));
    const turn = by.includes("runs-next.n_clicks") ? 1 : by.includes("runs-previous.n_clicks") ? -1 : 0;
    if (turn) return alone(Object.assign({}, known, { page: Math.min(Math.max(0, known.page + turn), cursors.length - 1) }));
    const chosen = by.includes("runs-sort.data") ? sort : by.includes("runs-order.value") && order ? order : known.sort;
    now = {
      q: q || "", project: project || null, task: task || null, group: group || null, status: status || null, tag: tag || "", since: since || RUNS.since, shelf: shelf || RUNS.shelf,
      cols: joined(cols), sort: chosen || RUNS.sort, page: 0,
    };
    if (same(Object.assign({}, known, { page: 0 }), now)) return nothing;
    write(now, RUNS, by.includes("runs-q.value") || by.includes("runs-tag.value"));
    return alone(now).slice(0, 10).concat([now.sort]);
  }

  /* Steps that a zoomed range of the x axis covers, read from the points that are drawn. */
  function zoomed(relayout, figures, kind) {
    if (!relayout) return undefined;
    if (relayout["xaxis.autorange"]) return { from: null, to: null };
    const ends = relayout["xaxis.range"] || [relayout["xaxis.range[0]"], relayout["xaxis.range[1]"]];
    if (ends[0] === undefined || ends[1] === undefined) return undefined;
    const low = Math.min(ends[0], ends[1]), high = Math.max(ends[0], ends[1]);
    if (kind === "step") return { from: Math.max(0, Math.floor(low)), to: Math.ceil(high) };
    const batch = figures && figures.noise.data.find((trace) => trace.name === "batch");
    if (!batch) return undefined;
    const steps = batch.x.map((x, i) => (x !== null && x >= low && x <= high ? batch.customdata[i][2] : null)).filter((s) => s !== null);
    if (!steps.length) return undefined;
    return { from: Math.min(...steps), to: Math.max(...steps) };
  }

  function runView(search, x, kind, windowIndex, pref, layer, noise, terms, loss, view, figures, windows) {
    const by = triggers();
    const nothing = [skip(), skip(), skip(), skip(), skip(), skip(), skip(), skip(), skip()];
    if (!window.location.pathname.startsWith("/runs/")) return nothing;
    if (!view || by.includes("address.search")) {
      const now = readRun(search);
      if (view && same(view, now)) return nothing;
      return parts(view, now, [now.x, now.kind, Math.max(0, windows.indexOf(now.w)), now.pref, now.layer]);
    }
    const now = Object.assign({}, view);
    const dragged = by.some((id) => id.endsWith(".relayoutData")) || by.includes("run-pref.value");
    if (by.some((id) => id.endsWith(".relayoutData"))) {
      const relayout = by.includes("run-noise.relayoutData") ? noise : by.includes("run-terms.relayoutData") ? terms : loss;
      const kind = by.includes("run-loss.relayoutData") && view.x === "loss" ? "step" : view.x;
      const range = zoomed(relayout, figures, kind);
      if (!range) return nothing;
      Object.assign(now, range);
    } else {
      Object.assign(now, { x: x || RUN.x, kind: kind || RUN.kind, w: windows[windowIndex] || RUN.w, pref: pref === null || pref === undefined ? RUN.pref : pref, layer: layer || null });
      /* layers are measured of kind simple only: the choice made last counts */
      if (now.layer && now.kind !== RUN.kind) Object.assign(now, by.includes("run-layer.value") ? { kind: RUN.kind } : { layer: null });
    }
    if (same(view, now)) return nothing;
    write(now, RUN, dragged);
    const moved = (value, chosen) => (value === chosen ? skip() : value);
    return parts(view, now, [skip(), moved(now.kind, kind), skip(), skip(), moved(now.layer, layer || null)]);
  }

  /* One store for each callback that reads the view, so that a moved slider does not fetch the series again. */
  function parts(before, now, controls) {
    const pick = (v, keys) => (v ? keys.map((key) => v[key]) : null);
    const changed = (keys) => !before || !same(pick(before, keys), pick(now, keys));
    const series = ["x", "w", "from", "to", "layer", "kind"];
    return [
      now,
      changed(series) ? now : skip(),
      changed(["pref", ...LIMITS]) ? Object.fromEntries(["pref", ...LIMITS].map((key) => [key, now[key]])) : skip(),
      changed(["from", "to"]) ? { from: now.from, to: now.to } : skip(),
      ...controls,
    ];
  }

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
  window.dash_clientside.noisescale = Object.assign(window.dash_clientside.noisescale || {}, { runsView, runView });
})();
