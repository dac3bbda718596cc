/* Keys in the list of runs: j and k go from name to name, x chooses the row, c compares the chosen ones; Enter follows the name, as on every link, also from another cell. [ and ] go from run to run. */
(function () {
  const isTyping = (target) => target.closest && target.closest("input:not([type=checkbox]), textarea, select, [role=listbox], [role=slider], dialog");
  const number = (link) => Number(link.closest(".ag-row").getAttribute("row-index"));
  const names = () => Array.from(document.querySelectorAll("#runs-grid .ag-row a[data-go]")).sort((a, b) => number(a) - number(b));

  function move(by) {
    const all = names(), row = document.activeElement.closest && document.activeElement.closest("#runs-grid .ag-row");
    const at = row ? all.findIndex((name) => number(name) === Number(row.getAttribute("row-index"))) : by > 0 ? -1 : all.length;
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    if (next) next.focus();
  }

  function choose() {
    const row = document.activeElement.closest && document.activeElement.closest("#runs-grid .ag-row");
    const box = row && document.querySelector('#runs-grid .ag-row[row-index="' + row.getAttribute("row-index") + '"] .ag-checkbox-input');
    if (box) box.click();
  }

  function open() {
    const row = document.activeElement.closest("#runs-grid .ag-row");
    const name = row && names().find((link) => number(link) === Number(row.getAttribute("row-index")));
    if (name) name.click();
  }

  function compare() {
    const bar = document.getElementById("runs-bar"), link = document.getElementById("runs-compare");
    if (bar && !bar.hidden && link) link.click();
  }

  /* From the page of a run to its neighbours in the list as it was last seen. */
  function neighbour(by) {
    const here = window.location.pathname.split("/")[2], list = JSON.parse(window.sessionStorage.getItem("noisescale-list") || "[]");
    const next = list.includes(here) ? list[list.indexOf(here) + by] : undefined;
    if (next === undefined) return;
    window.history.pushState(null, "", "/runs/" + encodeURIComponent(next));
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  }

  const ON_A_RUN = { "[": () => neighbour(-1), "]": () => neighbour(1) };
  const KEYS = { c: compare, Enter: open, j: () => move(1), k: () => move(-1), x: choose };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    const key = document.getElementById("runs-grid") ? KEYS[event.key] : /^\/runs\/[^/]+$/.test(window.location.pathname) ? ON_A_RUN[event.key] : null;
    /* a link or a button does by itself what Enter is for */
    if (!key || (key === open && !event.target.matches(".ag-cell"))) return;
    event.preventDefault();
    key();
  });
})();
