/* Views of the list of runs that the reader has named: they stay in this browser, each is an address. And which runs are chosen, in the address too. */
(function () {
  const { skip, said, RUNS } = window.noisescaleAddress;
  const MOST = 30, MOST_CHOSEN = 20, LIST = "noisescale-list";
  const words = (view) => said(Object.assign({}, view, { view: null }), RUNS);
  const named = (views, name) => (views || []).find((one) => one.name === name);
  const address = (one) => "/runs?" + (one.query ? one.query + "&" : "") + "view=" + encodeURIComponent(one.name);

  function go(url) {
    window.history.pushState(null, "", url);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  }

  /* The view shown is a saved one where it asks the same, whatever the address calls it. */
  function savedViews(views, view) {
    const all = views || [], shown = view && all.find((one) => one.query === words(view));
    return [all.map((one) => one.name), shown ? shown.name : null, !shown];
  }

  function openSavedView(name, views) {
    const one = named(views, name);
    if (one && window.location.pathname === "/runs" && one.query !== said(viewNow(), RUNS)) go(address(one));
    return name || "";
  }

  function viewNow() {
    const query = new URLSearchParams(window.location.search), view = { view: null };
    Object.keys(RUNS).forEach((key) => { if (key !== "view") view[key] = query.has(key) ? query.get(key) : RUNS[key]; });
    return view;
  }

  function keepView(save, submit, forget, name, shown, views) {
    const by = window.dash_clientside.callback_context.triggered.map((t) => t.prop_id), all = views || [], wanted = (name || "").trim();
    if (by.includes("runs-forget.n_clicks")) return all.filter((one) => one.name !== shown);
    if (!wanted || !by.length) return skip();
    const kept = all.filter((one) => one.name !== wanted).concat([{ name: wanted, query: said(viewNow(), RUNS) }]);
    document.querySelectorAll("details.details[open]").forEach((details) => details.removeAttribute("open"));
    return kept.slice(-MOST);
  }

  const component = (type, props) => ({ namespace: "dash_html_components", type, props });

  function linkedViews(views) {
    if (!views || !views.length) return [];
    const icon = () => component("Span", { className: "i i-bookmark", "aria-hidden": "true" });
    const link = (one) => component("A", { href: address(one), "data-go": "page", title: one.name, children: [icon(), component("Span", { children: one.name })] });
    return [component("Div", { className: "lab", children: "Saved views" })].concat(views.map(link));
  }

  /* -- chosen runs -- */

  const addressed = () => (new URLSearchParams(window.location.search).get("sel") || "").split(",").filter(Boolean);
  let filled = null;

  /* Once for each visit of the page, when its first rows are there. */
  function selectAsAddressed(rows) {
    /* [ and ] go through this list on the page of a run */
    if (rows && rows.length) window.sessionStorage.setItem(LIST, JSON.stringify(rows.map((row) => row.id)));
    const ids = addressed(), grid = document.getElementById("runs-grid");
    if (!rows || !rows.length || filled === grid) return skip();
    filled = grid;
    if (!ids.length) return skip();
    return rows.filter((row) => ids.includes(row.id));
  }

  function selectionAddressed(rows) {
    if (window.location.pathname !== "/runs") return skip();
    const ids = (rows || []).map((row) => row.id).slice(0, MOST_CHOSEN), query = new URLSearchParams(window.location.search);
    query.delete("sel");
    const rest = query.toString(), parts = [rest, ids.length ? "sel=" + ids.join(",") : ""].filter(Boolean);
    window.history.replaceState(window.history.state, "", "/runs" + (parts.length ? "?" + parts.join("&") : ""));
    return ids;
  }

  Object.assign(window.dash_clientside.noisescale, { savedViews, openSavedView, keepView, linkedViews, selectAsAddressed, selectionAddressed });
})();
