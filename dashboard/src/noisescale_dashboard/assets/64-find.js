/* A run is found from any page: the list of those whose name has these letters, whenever they sent data. */
(function () {
  const skip = () => window.dash_clientside.no_update;

  function findRun(submitted, letters) {
    // Enter may come before Dash has heard of the last letter
    const wanted = (document.getElementById("find")?.value || letters || "").trim();
    if (!submitted || !wanted) return skip();
    window.history.pushState(null, "", "/runs?since=any&q=" + encodeURIComponent(wanted));
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    return "";
  }

  Object.assign(window.dash_clientside.noisescale, { findRun });
})();
