/* Live pages ask for news only while someone looks and something runs. */
(function () {
  const skip = () => window.dash_clientside.no_update;

  function pulse(ticks, live) {
    if (!ticks || document.hidden || !live || !live.running) return skip();
    /* Dash drops the answer of a callback that is asked again: a server slower than the clock would never be heard */
    if (window.noisescaleCallbacks.pending) return skip();
    /* of two ticks after news one is enough, and charts of an old run move too little to be drawn again with every tick */
    if (ticks - live.newsTick < 2) return skip();
    if (live.every && live.received && Date.now() - live.received < 1000 * live.every) return skip();
    /* news that nobody waits for do not dim what is shown */
    document.documentElement.dataset.quiet = "1";
    return Date.now();
  }

  /* What stands beside the main figure is asked for once that is there: with every look, and later than it with news. */
  const { same } = window.noisescaleAddress;
  function besideAsked(live, view, asked, said) {
    if (!live || !live.at || !view) return [skip(), skip()];
    /* what could not be loaded is asked for again with the first answer that comes */
    /* of a run that has ended no later answer comes */
    const isLate = asked && live.stamp !== asked.stamp && (!live.running || Date.now() - asked.at >= 30000);
    const isNews = Boolean(asked && (isLate || String(said).startsWith("not loaded")));
    const isLook = Boolean(asked && !same(asked.view, view));
    if (asked && !isLook && !isNews) return [skip(), skip()];
    const since = isLook && !isNews ? { at: asked.at, stamp: asked.stamp } : { at: Date.now(), stamp: live.stamp };
    return [Object.assign({ view }, since), isNews ? Date.now() : skip()];
  }

  /* Records are asked for after the main figure, once a minute while it has news, and again where they did not come. */
  function recordsAsked(live, asked, shown) {
    if (!live || !live.at) return skip();
    const isFresh = asked && shown && (live.stamp === asked.stamp || (live.running && Date.now() - asked.at < 60000));
    return isFresh ? skip() : { at: Date.now(), stamp: live.stamp };
  }

  /* Layers follow a zoomed main figure; another look at them alone waits for nothing. */
  function layersAsked(layers, live, view, asked) {
    const isAhead = view && view.linked && live && live.range && !same(live.range, [view.from, view.to]);
    return !layers || !live || isAhead || same(layers, asked) ? skip() : layers;
  }

  /* what changes slowly is asked for once a minute, and once at first */
  function slowPulse(pulse, runId, last) {
    return last && Date.now() - last < 60000 ? skip() : Date.now();
  }

  function liveWords(ticks, live) {
    if (!live || !live.running) return live && live.words ? live.words : "";
    const seconds = Math.max(0, Math.round((Date.now() - live.received) / 1000));
    if (window.noisescaleCallbacks.lost || seconds > 20 + (live.every || 0)) return "live updates paused";
    const dot = { namespace: "dash_html_components", type: "Span", props: { className: "dot running" } };
    return [dot, "live, " + seconds + " s ago"];
  }

  /* The first answer is not news that anyone waited for. */
  function received(live, ticks, before) {
    if (!live) return skip();
    const isNews = before && before.stamp !== live.stamp;
    return Object.assign({}, live, { received: Date.now(), newsTick: isNews ? ticks : before && before.newsTick });
  }

  function withSparklines(rows, sparks) {
    if (!rows) return skip();
    return rows.map((row) => Object.assign({}, row, { spark: sparks && sparks[row.id] ? sparks[row.id].spark : null }));
  }

  /* Sparklines come in turns until every row has that of its newest step: the first are drawn soon. */
  const SPARKLINES_A_TURN = 16;
  function sparklinesWanted(rows, sparks) {
    const isStale = (row) => !sparks || !sparks[row.id] || sparks[row.id].stamp !== row.stamp;
    const stale = (rows || []).filter(isStale).slice(0, SPARKLINES_A_TURN);
    return stale.length ? Object.fromEntries(stale.map((row) => [row.id, row.stamp])) : skip();
  }

  function sparklinesKept(fresh, sparks, rows) {
    if (!fresh) return skip();
    const all = Object.assign({}, sparks, fresh), shown = (rows || []).filter((row) => all[row.id]);
    return Object.fromEntries(shown.map((row) => [row.id, all[row.id]]));
  }

  const partShown = (part) => "part-" + (part || "figures");

  function layerClicked(click, names) {
    if (!click || !click.points || !click.points.length || !names) return skip();
    return names[Math.round(click.points[0].y)] || skip();
  }

  /* What was redundant so far, below the example efficiency. */
  const wasteLine = (waste) => [waste ? waste.words : "", waste ? waste.title : ""];

  /* Runs that were deleted are gone once the time for undoing is over, unless something else was done meanwhile. */
  let purge = 0;
  function purgeLater(done, wait) {
    window.clearTimeout(purge);
    if (!done || !done.doomed || !done.doomed.length) return skip();
    purge = window.setTimeout(() => {
      if (document.getElementById("runs-outcome")) window.dash_clientside.set_props("runs-purge", { data: Date.now() });
    }, wait);
    return skip();
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.noisescale = Object.assign(window.dash_clientside.noisescale || {}, { pulse, besideAsked, recordsAsked, layersAsked, slowPulse, liveWords, received, withSparklines, sparklinesWanted, sparklinesKept, partShown, layerClicked, wasteLine, purgeLater });
})();
