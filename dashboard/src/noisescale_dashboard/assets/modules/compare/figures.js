/* The axis of a running run grows, and plotly then forgets where the reader has zoomed to. */
import { context, same } from "../shell/dash.js";
import { paintAll } from "../shell/figures.js";
import { plotIn } from "../shell/plots.js";

/* by the id of a graph: the range that it was last given, and of which view */
const given = {};

function zoomKept(figure, id) {
  if (!figure || !figure.layout) return figure;
  const plot = plotIn(id);
  const seen = plot && plot.layout && plot.layout.xaxis;
  const before = given[id];
  const { xaxis, uirevision } = figure.layout;
  given[id] = { range: xaxis.range, revision: uirevision };
  const isZoomed = before && seen && seen.range && !seen.autorange && !same(seen.range, before.range);
  if (!isZoomed || before.revision !== uirevision) return figure;
  return { ...figure, layout: { ...figure.layout, xaxis: { ...xaxis, range: seen.range.slice() } } };
}

export function paintCompared(figures, theme, palette) {
  const graphs = context().outputs_list;
  return paintAll(figures, theme, palette).map((figure, place) => zoomKept(figure, graphs[place].id));
}
