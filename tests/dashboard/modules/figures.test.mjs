import assert from "node:assert/strict";
import test from "node:test";

import { changed, elements, SKIP } from "./support/page.mjs";

const { paintCompared } = await import("../../../dashboard/src/noisescale_dashboard/assets/modules/compare/figures.js");
const { columnsOf, momentAt, nearest, stepOf } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/run/moments.js");
const { layerClicked, partShown, wasteLine } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/run/asked.js");
const { figureOf, paintAll, paintOne, recolored, toLight, translator } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/shell/figures.js");
const { axisOf, drawOnlyChanges, isOn, pixelOf } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/shell/plots.js");

const PALETTE = { "#2A6BD4": "#6CA6FF", "#FFFFFF": "#14181F" };
const figure = {
  data: [{ name: "#2A6BD4", x: ["#2A6BD4"], line: { color: "#2a6bd4" }, fillcolor: "rgba(42,107,212,0.2)" }],
};
const dark = {
  data: [{ name: "#2A6BD4", x: ["#2A6BD4"], line: { color: "#6CA6FF" }, fillcolor: "rgba(108,166,255,0.2)" }],
};
const store = (figures) => ({ json: JSON.stringify(figures) });

test("only what is a colour is recoloured: a layer may be called like one", () => {
  assert.deepEqual(recolored(figure, translator(PALETTE)), dark);
  assert.equal(translator(PALETTE)("rgba(1,2,3,0.2)"), "rgba(1,2,3,0.2)");
});

test("colours of a scale are recoloured, its places are not", () => {
  const scale = {
    marker: {
      colorscale: [
        [0, "#FFFFFF"],
        [1, "#2A6BD4"],
      ],
      color: [1, 2],
    },
  };

  assert.deepEqual(recolored(scale, translator(PALETTE)).marker.colorscale, [
    [0, "#14181F"],
    [1, "#6CA6FF"],
  ]);
});

test("a stored figure is read once", () => {
  const one = store(figure);

  assert.equal(figureOf(one), figureOf(one));
  assert.deepEqual([figureOf(null), figureOf(dark)], [null, dark]);
});

test("figures are painted in the theme, by the name of their graph; what is not there is left alone", () => {
  window.dash_clientside.callback_context.outputs_list = [{ id: "run-noise" }, { id: "run-terms" }];

  assert.deepEqual(changed([], paintAll, { noise: store(figure) }, "dark", PALETTE), [dark, SKIP]);
  assert.deepEqual(changed([], paintOne, store(figure), "light", PALETTE), figure);
});

test("a picture is light, whatever the page shows", () => {
  paintOne(null, "dark", PALETTE);
  document.documentElement.theme = "dark";
  assert.deepEqual(toLight(dark).data[0].line, { color: "#2A6BD4" });
  document.documentElement.theme = "light";
  assert.equal(toLight(figure), figure);
});

test("a zoomed figure keeps its range when its axis grows, until the view is another", () => {
  const one = (end, uirevision) => ({ noise: { data: [], layout: { uirevision, xaxis: { range: [0, end] } } } });
  const seen = { layout: { xaxis: { range: [0, 10] } } };
  elements["compare-noise"] = { querySelector: () => seen };
  window.dash_clientside.callback_context.outputs_list = [{ id: "compare-noise" }];
  const painted = (figures) => paintCompared(figures, "light", PALETTE)[0].layout.xaxis.range;

  assert.deepEqual(painted(one(10, "a")), [0, 10]);
  seen.layout.xaxis.range = [2, 4];
  assert.deepEqual(
    [painted(one(20, "a")), painted(one(20, "b"))],
    [
      [2, 4],
      [0, 20],
    ],
  );
});

test("a place on an axis is where plotly draws it, on a logarithmic one too", () => {
  const axis = { _offset: 10, _length: 100, l2p: (value) => 20 * value };

  assert.deepEqual([pixelOf(axis, 2), pixelOf({ ...axis, type: "log" }, 1000)], [50, 70]);
  assert.deepEqual(
    [9, 10, 111, 112].map((at) => isOn(axis, at)),
    [true, true, true, false],
  );
  const plot = { _fullLayout: { xaxis: "first", xaxis3: "third" } };
  assert.deepEqual([axisOf(plot, "x"), axisOf(plot, "x", { xaxis: "x3" })], ["first", "third"]);
});

const COLUMNS = [
  ["step", [10, 20, 30]],
  ["noise scale (tokens)", [100, null, 300]],
  ["batch (tokens)", [8, 8, 16]],
  ["training loss", [3, 2, 1]],
];
const series = columnsOf({ layout: { meta: { columns: COLUMNS } }, data: [{ name: "batch", x: [0.1, 0.2, null] }] });

test("the points of the main figure are read by the names of its columns", () => {
  assert.deepEqual(momentAt(series, 28), { step: 30, x: null, noise: 300, batch: 16, loss: 1 });
  assert.deepEqual([momentAt(series, null), momentAt(null, 3), columnsOf({ data: [] })], [null, null, null]);
});

test("the nearest point counts, points without a value do not", () => {
  assert.deepEqual([nearest([1, null, 4], 3), nearest([null], 3), nearest([1, 3], 2)], [2, -1, 0]);
});

test("a place over hours stands for the step of the nearest point, over steps for itself", () => {
  const time = { x: "time" };

  assert.equal(stepOf(series, time, "loss", { x: 0.19 }), 20);
  assert.equal(stepOf(series, time, "noise", { x: 0.19, customdata: [0, 0, 10] }), 10);
  assert.equal(stepOf(series, time, "layers", { x: 12.4 }), 12);
  assert.equal(stepOf(series, { x: "loss" }, "loss", { x: 25 }), 25);
});

test("a click in the map of layers chooses the layer, and one beside it none", () => {
  assert.equal(layerClicked({ points: [{ y: 0.6 }] }, ["a", "b"]), "b");
  assert.deepEqual([layerClicked({ points: [] }, ["a"]), layerClicked(null, null)], [SKIP, SKIP]);
  assert.equal(layerClicked({ points: [{ y: 7 }] }, ["a"]), SKIP);
  assert.deepEqual([partShown(null), wasteLine(null)], ["part-figures", ["", ""]]);
});

/* Of plotly only what counts here: it keeps what it draws, and writes its own size into the layout. */
function drawing() {
  const plotly = {
    numDrawn: 0,
    react(plot, { data, layout }) {
      plotly.numDrawn += 1;
      Object.assign(plot, { data, layout: { ...layout, height: undefined, autosize: true } });
      return Promise.resolve(plot);
    },
  };
  drawOnlyChanges(plotly);
  return plotly;
}

test("a figure that stands there is not drawn once more, and one that differs in anything is", () => {
  const asked = () => ({ data, layout: { height: 372, xaxis: { range: [0, 9] } }, config: { responsive: true } });
  const data = [{ x: [1, 2] }];
  const others = [
    { ...asked(), data: [{ x: [1, 2] }] },
    { ...asked(), layout: { ...asked().layout, xaxis: { range: [2, 5] } } },
    { ...asked(), layout: { ...asked().layout, height: 200 } },
    { ...asked(), config: { responsive: false } },
    { ...asked(), frames: [{}] },
  ];

  for (const other of others) {
    const plotly = drawing();
    const plot = {};
    plotly.react(plot, asked());
    plotly.react(plot, asked());
    assert.equal(plotly.numDrawn, 1);
    plotly.react(plot, other);
    assert.equal(plotly.numDrawn, 2);
  }
});

test("a dragged range that comes back as the figure's own is not drawn once more", () => {
  const plotly = drawing();
  const plot = {};
  const data = [{ x: [1, 2] }];
  plotly.react(plot, { data, layout: { height: 372, xaxis: { range: [0, 9] } } });

  plot.layout.xaxis.range = [2, 5];
  plotly.react(plot, { data, layout: { height: 372, xaxis: { range: [2, 5] } } });

  assert.equal(plotly.numDrawn, 1);
});

test("a page without plotly, or a figure without a layout, is none of its business", () => {
  drawOnlyChanges(undefined);
  const plotly = { numDrawn: 0, react: () => (plotly.numDrawn += 1) };
  drawOnlyChanges(plotly);
  plotly.react({}, { data: [] });
  plotly.react(null, null);
  assert.equal(plotly.numDrawn, 2);
});
