/* Cells of the table of runs. Text is set through React.createElement, so a name is never markup. */
(function () {
  const cells = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});
  const functions = (window.dashAgGridFunctions = window.dashAgGridFunctions || {});
  const h = (...args) => window.React.createElement(...args);

  functions.keepOrder = () => 0;
  functions.reportSort = (params) => {
    if (params.source !== "uiColumnSorted") return;
    const sorted = params.api.getColumnState().find((column) => column.sort);
    window.dash_clientside.set_props("runs-sort", { data: sorted ? (sorted.sort === "desc" ? "-" : "") + sorted.colId : "-misfit" });
  };

  function status(d) {
    const style = d.status === "silent" || d.status === "crashed" ? "stalled" : d.status;
    return h("span", { className: "dot " + style, title: d.statusWords, role: "img", "aria-label": d.statusWords });
  }

  cells.RunName = (p) => {
    const d = p.data;
    return h("span", { className: "run-name" }, status(d),
      h("a", { href: "/runs/" + encodeURIComponent(d.id), "data-go": "page", title: d.name }, d.name),
      d.tags.slice(0, 1).map((tag) => h("span", { className: "chip tag", key: tag, title: d.tags.join(", ") }, tag)));
  };

  cells.RunLine = (p) => {
    const d = p.data;
    return h("a", { className: "run-line", href: "/runs/" + encodeURIComponent(d.id), "data-go": "page" }, status(d),
      h("span", { className: "two" },
        h("span", { className: "nm" }, d.name),
        h("span", { className: "sub" },
          "noise ", h("b", { className: !d.interval ? "dim" : d.state === "resolved" ? "noise-text" : "t2" }, d.noise), " " + d.unit + (d.interval ? ", " + d.interval : "")),
        h("span", { className: "sub" },
          "batch ", h("b", { className: "batch-text" }, d.batch), " · ", h("b", { className: "say " + d.decision }, d.decisionWords)),
        d.moreLine ? h("span", { className: "sub", title: d.moreLine }, d.moreLine) : null),
      picture(d.spark, 64, 26));
  };

  /* Stretches of neighbouring known values: a line never crosses a gap. */
  function stretches(values) {
    const found = [];
    values.forEach((v, i) => {
      if (v === null) return;
      if (i && values[i - 1] !== null) found[found.length - 1].push(i);
      else found.push([i]);
    });
    return found;
  }

  function picture(s, W, H) {
    if (!s) return h("span", { className: "spark-none", style: { width: W } });
    const n = s.y.length, X = (i) => 2 + (i * (W - 4)) / (n - 1), Y = (v) => H - 3 - ((v - s.min) / (s.max - s.min)) * (H - 6);
    const at = (i, v) => X(i).toFixed(1) + "," + Math.max(1, Math.min(H - 1, Y(v))).toFixed(1);
    const path = (values) => stretches(values).map((part) => "M" + part.map((i) => at(i, values[i])).join("L") + (part.length === 1 ? "h.1" : "")).join("");
    const band = stretches(s.y).map((part) => "M" + part.map((i) => at(i, s.high[i] === null ? s.y[i] : s.high[i])).join("L") + "L" + part.slice().reverse().map((i) => at(i, s.low[i] === null ? s.y[i] : s.low[i])).join("L") + "Z").join("");
    const bound = s.low.map((v, i) => (s.y[i] === null ? v : null));
    const steps = stretches(s.batch).map((part) => "M" + part.map((i, k) => (k ? "H" + X(i).toFixed(1) + "V" + Y(s.batch[i]).toFixed(1) : at(i, s.batch[i]))).join("")).join("");
    return h("svg", { className: "spark", width: W, height: H, role: "img", "aria-label": "noise scale and batch over training" },
      h("path", { className: "band", d: band }), h("path", { className: "bt", d: steps }), h("path", { className: "ln", d: path(s.y) }), h("path", { className: "lb", d: path(bound) }));
  }

  cells.Spark = (p) => picture(p.data.spark, 128, 26);

  cells.NoiseScale = (p) => {
    const d = p.data;
    if (!d.interval) return h("span", { className: "dim", title: d.noiseTitle }, d.noise);
    return h("span", { title: d.noiseTitle }, h("b", { className: d.state === "resolved" ? "" : "t2" }, d.noise), h("span", { className: "dim after" }, d.interval));
  };

  cells.Batch = (p) => h("span", null, p.data.batch, h("span", { className: "dim after" }, p.data.unit));

  cells.Efficiency = (p) => h("span", { title: p.data.efficiencyTitle }, p.data.efficiency);

  cells.More = (p) => {
    const words = p.data.more && p.data.more[p.colDef.colId];
    return words === undefined || words === null ? h("span", { className: "dim" }, "–") : h("span", { title: words }, words);
  };

  cells.Step = (p) => h("span", { title: p.data.stepTitle }, p.data.step);

  cells.Decision = (p) => {
    const d = p.data, icons = { inc: "up", dec: "down", keep: "equal", ins: "dash" };
    return h("span", { className: "pill " + d.decision, title: d.decisionTitle }, h("span", { className: "i xs i-" + icons[d.decision], "aria-hidden": "true" }), d.decisionWords);
  };

  /* Batch ÷ recommended, log₂, ends at 1/16 and 16; shaded: within 2 ×. */
  cells.Fit = (p) => {
    const f = p.data.fit, W = 98, H = 26, middle = W / 2;
    if (!f) return h("span", { className: "dim" }, "–");
    const X = (q) => middle + (Math.max(-4, Math.min(4, Math.log2(q))) * (middle - 6)) / 4;
    const mark = h("rect", { className: f.open ? "dm open" : "dm", x: X(f.at) - 4, y: 9, width: 8, height: 8, rx: 1 });
    const range = f.open ? h("line", { className: "to", x1: X(f.at) - 6, x2: Math.max(3, X(f.at) - 26), y1: 13, y2: 13 })
      : h("line", { className: "ci", x1: X(f.low), x2: X(f.high), y1: 13, y2: 13 });
    return h("svg", { className: "fit", width: W, height: H, role: "img", "aria-label": f.words }, h("title", null, f.words),
      h("rect", { className: "z", x: X(0.5), y: 5, width: X(2) - X(0.5), height: 16, rx: 2 }),
      h("line", { className: "ax", x1: middle, x2: middle, y1: 5, y2: 21 }), range, mark);
  };
})();
