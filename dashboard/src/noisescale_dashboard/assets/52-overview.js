/* The view of the overview, in the address; a click on a run in its figures opens that run. */
(function () {
  const { skip, same, triggers, write } = window.noisescaleAddress;
  const OVERVIEW = { scope: "running", pref: "0.5", project: null };
  const SCOPES = ["running", "7d", "30d"], PREFERENCES = ["0.2", "0.5", "0.8"];

  function read(search) {
    const query = new URLSearchParams(search || "");
    const one = (key, known) => (known.includes(query.get(key)) ? query.get(key) : OVERVIEW[key]);
    return { scope: one("scope", SCOPES), pref: one("pref", PREFERENCES), project: query.get("project") };
  }

  function overviewView(search, scope, pref, project, view) {
    const nothing = [skip(), skip(), skip(), skip()];
    if (window.location.pathname !== "/") return nothing;
    if (!view || triggers().includes("address.search")) {
      const now = read(search);
      return view && same(view, now) ? nothing : [now, now.scope, now.pref, now.project];
    }
    const now = { scope: scope || OVERVIEW.scope, pref: pref || OVERVIEW.pref, project: project || null };
    if (same(view, now)) return nothing;
    write(now, OVERVIEW, false);
    return [now, skip(), skip(), skip()];
  }

  function openClicked() {
    const clicked = window.dash_clientside.callback_context.triggered[0];
    const point = clicked && clicked.value && clicked.value.points && clicked.value.points[0];
    if (!point || !point.customdata) return skip();
    window.history.pushState(null, "", "/runs/" + encodeURIComponent(point.customdata[0]));
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.scrollTo(0, 0);
    return skip();
  }

  Object.assign(window.dash_clientside.noisescale, { overviewView, openClicked });
})();
