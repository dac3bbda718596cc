/* Keys in the list of runs: j and k go from name to name, x chooses the row; Enter follows the name, as on every link. */
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

  const KEYS = { j: () => move(1), k: () => move(-1), x: choose };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    if (!KEYS[event.key] || !document.getElementById("runs-grid")) return;
    event.preventDefault();
    KEYS[event.key]();
  });
})();
