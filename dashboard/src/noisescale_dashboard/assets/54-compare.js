/* The view of the page that compares, in the address; and which colour a run has there. */
(function () {
  const { skip, same, triggers, write } = window.noisescaleAddress;
  const COMPARE = { tab: null, runs: "", colors: null, x: "step", y: "noise", project: null, task: null, size: "num_parameters", same: null };
  const TABS = ["runs", "config", "tasks"], X = ["step", "units", "time", "loss"], Y = ["noise", "loss", "batch", "efficiency"];
  const SLOTS = 5;

  const slotOf = (id) => Array.from(id).reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 1000003, 7) % SLOTS;

  /* A slot for each run: what it had, else that of its id, else the next free one; none is left for the sixth. */
  function slotsOf(runs, had) {
    const taken = runs.map((id) => (had[id] === undefined ? null : had[id]));
    return runs.map((id, place) => {
      if (taken[place] !== null) return taken[place];
      for (let step = 0; step < SLOTS; step += 1) {
        const slot = (slotOf(id) + step) % SLOTS;
        if (!taken.includes(slot)) return (taken[place] = slot);
      }
      return null;
    });
  }

  /* The slots that an address names, as far as each is one and stands there once. */
  function named(runs, word) {
    const given = (word || "").split(""), had = {};
    runs.forEach((id, place) => {
      const slot = Number(given[place]);
      if (given[place] !== undefined && given[place] !== "-" && Number.isInteger(slot) && slot < SLOTS && !Object.values(had).includes(slot)) had[id] = slot;
    });
    return had;
  }

  function read(search) {
    const query = new URLSearchParams(search || "");
    const one = (key, known, usual) => (known.includes(query.get(key)) ? query.get(key) : usual);
    const runs = Array.from(new Set((query.get("runs") || "").split(",").map((id) => id.trim()).filter(Boolean)));
    return {
      tab: one("tab", TABS, runs.length ? "runs" : "tasks"), runs, colors: slotsOf(runs, named(runs, query.get("colors"))),
      x: one("x", X, COMPARE.x), y: one("y", Y, COMPARE.y),
      project: query.get("project") || null, task: query.get("task") || null, size: query.get("size") || COMPARE.size,
      same: query.get("same") === "1",
    };
  }

  /* Colours stand in the address where they are not those that the ids alone would give. */
  function said(view) {
    const usual = slotsOf(view.runs, {});
    return Object.assign({}, view, {
      tab: view.tab === (view.runs.length ? "runs" : "tasks") ? null : view.tab,
      runs: view.runs.join(","), same: view.same ? "1" : null,
      colors: same(usual, view.colors) ? null : view.colors.map((slot) => (slot === null ? "-" : slot)).join(""),
    });
  }

  const ofValue = (view) => (view.project && view.task ? JSON.stringify([view.project, view.task]) : null);

  function withRuns(view, runs) {
    const had = {};
    view.runs.forEach((id, place) => { if (view.colors[place] !== null) had[id] = view.colors[place]; });
    return { runs, colors: slotsOf(runs, had) };
  }

  function parsed(of) {
    if (!of) return { project: null, task: null };
    const [project, task] = JSON.parse(of);
    return { project, task };
  }

  function compareView(search, tab, x, y, pick, of, isSame, base, view) {
    const by = triggers(), nothing = Array(8).fill(skip());
    if (window.location.pathname !== "/compare") return nothing;
    if (!view || by.includes("address.search")) {
      const now = read(search);
      if (view && same(view, now)) return nothing;
      return [now, now.tab, now.x, now.y, now.runs, ofValue(now), now.same, null];
    }
    const now = Object.assign({}, view, { tab: tab || view.tab, x: x || view.x, y: y || view.y, same: Boolean(isSame) });
    if (by.includes("compare-of.value")) Object.assign(now, parsed(of));
    if (by.includes("compare-pick.value")) Object.assign(now, withRuns(view, pick || []));
    if (by.includes("compare-base.value") && base && view.runs.includes(base)) {
      Object.assign(now, withRuns(view, [base].concat(view.runs.filter((id) => id !== base))));
    }
    if (same(view, now)) return nothing;
    write(said(now), COMPARE, false);
    const moved = same(now.runs, view.runs) ? skip() : now.runs;
    return [now, skip(), skip(), skip(), by.includes("compare-base.value") ? moved : skip(), skip(), skip(), base ? null : skip()];
  }

  /* Runs of a name come from the server, once the reader pauses: only the newest are offered at first. */
  let typing = 0;

  function compareSearch(text) {
    window.clearTimeout(typing);
    typing = window.setTimeout(() => window.dash_clientside.set_props("compare-searched", { data: (text || "").trim() || null }), 250);
    return skip();
  }

  /* Which part shows is known before its data are. */
  const compareTab = (view) => TABS.map((tab) => (view ? tab !== view.tab : true));

  /* The axis of a running run grows, and plotly then forgets where the reader has zoomed to. */
  const given = {};

  function zoomKept(figure, id) {
    if (!figure || !figure.layout) return figure;
    const plot = document.querySelector("#" + id + " .js-plotly-plot"), seen = plot && plot.layout && plot.layout.xaxis;
    const before = given[id], layout = figure.layout;
    given[id] = { range: layout.xaxis.range, revision: layout.uirevision };
    if (!before || !seen || !seen.range || seen.autorange || before.revision !== layout.uirevision || same(seen.range, before.range)) return figure;
    return Object.assign({}, figure, { layout: Object.assign({}, layout, { xaxis: Object.assign({}, layout.xaxis, { range: seen.range.slice() }) }) });
  }

  function paintCompared(figures, theme, palette) {
    const graphs = window.dash_clientside.callback_context.outputs_list;
    return window.dash_clientside.noisescale.paintAll(figures, theme, palette).map((figure, place) => zoomKept(figure, graphs[place].id));
  }

  Object.assign(window.dash_clientside.noisescale, { compareView, compareSearch, compareTab, paintCompared });
})();
