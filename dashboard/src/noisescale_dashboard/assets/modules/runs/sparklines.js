/* The small picture of a run in its row, and when its points are asked for. */
import { skip } from "../shell/dash.js";

const A_TURN = 16;

/* Sparklines come in turns until every row has that of its newest step: the first are drawn soon. */
export function sparklinesWanted(rows, sparks) {
  const isStale = (row) => row.kind !== "fold" && (!sparks || !sparks[row.id] || sparks[row.id].stamp !== row.stamp);
  const stale = (rows || []).filter(isStale).slice(0, A_TURN);
  return stale.length ? Object.fromEntries(stale.map((row) => [row.id, row.stamp])) : skip();
}

export function sparklinesKept(fresh, sparks, rows) {
  if (!fresh) return skip();
  const all = { ...sparks, ...fresh };
  const shown = (rows || []).filter((row) => all[row.id]);
  return Object.fromEntries(shown.map((row) => [row.id, all[row.id]]));
}

export function withSparklines(rows, sparks) {
  if (!rows) return skip();
  return rows.map((row) => ({ ...row, spark: sparks && sparks[row.id] ? sparks[row.id].spark : null }));
}

/** Places of neighbouring known values: a line never crosses a gap. */
export function stretches(values) {
  const found = [];
  values.forEach((value, place) => {
    if (value === null) return;
    if (place && values[place - 1] !== null) found[found.length - 1].push(place);
    else found.push([place]);
  });
  return found;
}

/** The paths of a sparkline in a box: noise scale, its band, its lower bounds, and the batch as steps. */
export function pathsOf(spark, width, height) {
  const { y, low, high, batch, min, max } = spark;
  const across = (place) => (2 + (place * (width - 4)) / (y.length - 1)).toFixed(1);
  const up = (value) => height - 3 - ((value - min) / (max - min)) * (height - 6);
  const at = (place, value) => across(place) + "," + Math.max(1, Math.min(height - 1, up(value))).toFixed(1);
  const known = (values, place) => at(place, values[place] === null ? y[place] : values[place]);

  const line = (values, part) => {
    const points = part.map((place) => at(place, values[place])).join("L");
    return "M" + points + (part.length === 1 ? "h.1" : "");
  };
  const lines = (values) =>
    stretches(values)
      .map((part) => line(values, part))
      .join("");
  const around = (part) => {
    const there = part.map((place) => known(high, place));
    const back = part.map((place) => known(low, place)).reverse();
    return "M" + there.join("L") + "L" + back.join("L") + "Z";
  };
  const step = (place, isFirst) =>
    isFirst ? at(place, batch[place]) : "H" + across(place) + "V" + up(batch[place]).toFixed(1);
  const stairs = (part) => "M" + part.map((place, i) => step(place, i === 0)).join("");

  return {
    band: stretches(y).map(around).join(""),
    batch: stretches(batch).map(stairs).join(""),
    noise: lines(y),
    bound: lines(low.map((value, place) => (y[place] === null ? value : null))),
  };
}
