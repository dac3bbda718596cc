/* Light and dark: tokens are CSS variables; figures are drawn light and recoloured here. Narrow: figures take it as data. */
(function () {
  const skip = () => window.dash_clientside.no_update;
  const NARROW = window.matchMedia("(max-width: 860px)");
  const SYSTEM = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const current = () => root.getAttribute("data-mantine-color-scheme") || "light";

  function watchWidth() {
    if (!window.noisescaleWatchesWidth) {
      window.noisescaleWatchesWidth = true;
      let said = NARROW.matches, timer;
      /* printing makes the page narrow for a moment: nothing is drawn again for that */
      NARROW.addEventListener("change", () => {
        window.clearTimeout(timer);
        timer = window.setTimeout(() => {
          if (NARROW.matches === said) return;
          said = NARROW.matches;
          window.dash_clientside.set_props("narrow", { data: said });
        }, 200);
      });
      SYSTEM.addEventListener("change", (e) => {
        if (window.localStorage.getItem("mantine-color-scheme-value")) return;
        paint(e.matches ? "dark" : "light");
        window.dash_clientside.set_props("theme", { data: current() });
      });
    }
    return NARROW.matches;
  }

  function paint(theme) {
    root.setAttribute("data-mantine-color-scheme", theme);
  }

  function switchTheme(clicks, shown) {
    if (!clicks || !window.dash_clientside.callback_context.triggered.length) return current();
    const next = (shown || current()) === "dark" ? "light" : "dark";
    window.localStorage.setItem("mantine-color-scheme-value", next);
    paint(next);
    return next;
  }

  function translator(palette) {
    const hex = {}, rgb = {};
    const parse = (h) => [1, 3, 5].map((i) => parseInt(h.slice(i, i + 2), 16)).join(",");
    Object.keys(palette).forEach((light) => {
      hex[light.toUpperCase()] = palette[light];
      rgb[parse(light)] = parse(palette[light]);
    });
    return (color) => {
      if (typeof color !== "string") return color;
      if (color[0] === "#") return hex[color.toUpperCase()] || color;
      const found = /^rgba\((\d+),(\d+),(\d+),([\d.]+)\)$/.exec(color);
      const to = found && rgb[found.slice(1, 4).join(",")];
      return to ? "rgba(" + to + "," + found[4] + ")" : color;
    };
  }

  /* Only under keys that name a colour: a layer may be called "#2A6BD4". */
  function recolored(node, translate, isColor) {
    if (Array.isArray(node)) {
      if (!isColor && (!node.length || typeof node[0] !== "object")) return node;
      return node.map((item) => recolored(item, translate, isColor));
    }
    if (node && typeof node === "object") {
      const copy = {};
      Object.keys(node).forEach((key) => {
        const data = key === "x" || key === "y" || key === "z" || key === "customdata" || key === "meta";
        copy[key] = data ? node[key] : recolored(node[key], translate, /color/i.test(key));
      });
      return copy;
    }
    return isColor ? translate(node) : node;
  }

  /* What is drawn, in the light palette: for pictures, which have one ground whatever is shown. */
  let palettes = {};
  function toLight(node) {
    if (current() !== "dark") return node;
    return recolored(node, translator(Object.fromEntries(Object.entries(palettes).map(([light, dark]) => [dark, light]))), false);
  }
  window.noisescaleTheme = { toLight, figureOf };

  /* A figure as it is stored: one text, which is read once. */
  const read = new WeakMap();
  function figureOf(stored) {
    if (!stored || stored.json === undefined) return stored;
    if (!read.has(stored)) read.set(stored, JSON.parse(stored.json));
    return read.get(stored);
  }

  function shown(stored, theme, palette) {
    palettes = palette || palettes;
    if (!stored) return skip();
    return theme === "dark" ? recolored(figureOf(stored), translator(palette), false) : figureOf(stored);
  }

  /* Figures by the name of their graph without the page's: "noise" is drawn in "run-noise". */
  function paintAll(figures, theme, palette) {
    const graphs = window.dash_clientside.callback_context.outputs_list;
    return graphs.map((graph) => shown(figures && figures[graph.id.slice(graph.id.indexOf("-") + 1)], theme || current(), palette));
  }

  const paintOne = (figure, theme, palette) => shown(figure, theme || current(), palette);

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.noisescale = Object.assign(window.dash_clientside.noisescale || {}, { watchWidth, switchTheme, paintAll, paintOne });
})();
