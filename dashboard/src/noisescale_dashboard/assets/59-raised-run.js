/* A run that is pointed at in one card of the overview is raised in the others: its row, its panel, what has happened to it. */
(function () {
  const HEAD = 28, FOOT = 28, SIDE = 5;
  let raised = null;

  const plot = (id) => { const box = document.getElementById(id); return box && box.querySelector(".js-plotly-plot"); };
  const runOf = (trace) => (trace.customdata && trace.customdata[0] ? trace.customdata[0][0] : null);
  const axis = (gd, kind, trace) => gd._fullLayout[kind + "axis" + String(trace[kind + "axis"] || kind).slice(1)];

  function rows() {
    const gd = plot("overview-misfit");
    return gd && gd._fullLayout && gd.data ? gd.data.filter((trace) => trace.name === "batch now").map((trace) => {
      const y = axis(gd, "y", trace), half = Math.abs(y.l2p(0) - y.l2p(1)) / 2, middle = y._offset + y.l2p(trace.y[0]);
      return { gd, run: runOf(trace), left: 0, right: gd.clientWidth, top: middle - half, bottom: middle + half };
    }) : [];
  }

  function panels() {
    const gd = plot("overview-small");
    return gd && gd._fullLayout && gd.data ? gd.data.filter((trace) => trace.name === "batch").map((trace) => {
      const x = axis(gd, "x", trace), y = axis(gd, "y", trace);
      return { gd, run: runOf(trace), left: x._offset - SIDE, right: x._offset + x._length + SIDE, top: y._offset - HEAD, bottom: y._offset + y._length + FOOT };
    }) : [];
  }

  function raise(run) {
    if (run === raised) return;
    raised = run;
    document.querySelectorAll(".raised-box").forEach((old) => old.remove());
    document.querySelectorAll("li[data-run]").forEach((item) => item.classList.toggle("raised", run !== null && item.dataset.run === run));
    if (run === null) return;
    rows().concat(panels()).filter((place) => place.run === run).forEach((place) => {
      const box = document.createElement("span");
      box.className = "raised-box";
      box.setAttribute("aria-hidden", "true");
      Object.assign(box.style, { left: place.left + "px", top: place.top + "px", width: place.right - place.left + "px", height: place.bottom - place.top + "px" });
      place.gd.appendChild(box);
    });
  }

  function pointedAt(event) {
    const target = event.target.closest ? event.target : null;
    const item = target && target.closest("li[data-run]");
    if (item) return item.dataset.run;
    const id = target && ["overview-misfit", "overview-small"].find((one) => target.closest("#" + one));
    if (!id || event.clientX === undefined) return null;
    const box = plot(id).getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const found = (id === "overview-misfit" ? rows() : panels()).find((p) => x >= p.left && x <= p.right && y >= p.top && y <= p.bottom);
    return found ? found.run : null;
  }

  ["mousemove", "focusin"].forEach((name) => document.addEventListener(name, (event) => {
    if (document.getElementById("overview-misfit")) raise(pointedAt(event)); else raised = null;
  }));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && raised !== null) raise(null); });
})();
