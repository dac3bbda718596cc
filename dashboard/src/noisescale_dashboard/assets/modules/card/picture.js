/* The figure of a card as a picture on light ground, whatever the page shows. Nothing leaves this machine. */
import { toLight } from "../shell/figures.js";
import { plotOf, saveOf, words } from "./parts.js";

const HEAD = 54;
const FOOT = 26;
const SCALE = 2;
const FONT = "/assets/fonts/inter.woff2";
const FONT_FACE = "@font-face{font-family:Inter;font-weight:400 700;src:url(data:font/woff2;base64,";

/** A text as plotly shows it letter by letter: neither markup nor a formula. */
export const plain = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "$\u2060");

const style = () => window.getComputedStyle(document.documentElement);
const token = (name) => toLight({ color: style().getPropertyValue(name).trim() }).color;
const now = () => new Date().toISOString().slice(0, 16).replace("T", " ") + " UTC";

/* what the picture is of, and of when: it will be seen without its page */
function origin() {
  const of = words(document, ".crumb-end") || words(document, "h1");
  return [of, now(), "noisescale"].filter(Boolean).join(" · ");
}

async function fontFace() {
  const bytes = new Uint8Array(await (await fetch(FONT)).arrayBuffer());
  let binary = "";
  for (let start = 0; start < bytes.length; start += 32768) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 32768));
  }
  return FONT_FACE + btoa(binary) + ") format('woff2')}";
}

function line(text, size, color, shift, left, y = 1) {
  return {
    x: 0,
    y,
    xref: "paper",
    yref: "paper",
    xanchor: "left",
    yanchor: "bottom",
    xshift: 16 - left,
    yshift: shift,
    text,
    showarrow: false,
    font: { size, color, family: "Inter, system-ui, sans-serif" },
  };
}

/* The figure's layout with room for the card's title, which is text of the page, and for what it is of. */
function layoutOf(card, plot, width, height) {
  const layout = structuredClone(toLight(plot.layout));
  const margin = { t: 0, b: 0, l: 0, ...layout.margin };
  delete layout.meta;
  return {
    ...layout,
    width,
    height,
    autosize: false,
    paper_bgcolor: token("--panel"),
    margin: { ...layout.margin, t: margin.t + HEAD, b: margin.b + FOOT },
    annotations: [
      ...(layout.annotations || []),
      line("<b>" + plain(words(card, ".tt")) + "</b>", 14, token("--t1"), margin.t + 24, margin.l),
      line(plain(words(card, ".st")), 12, token("--t3"), margin.t + 6, margin.l),
      line(plain(origin()), 11, token("--t3"), -margin.b - 20, margin.l, 0),
    ],
  };
}

async function picture(card) {
  const plot = plotOf(card);
  const width = Math.round(plot.clientWidth);
  const height = Math.round(plot.clientHeight) + HEAD + FOOT;
  const figure = {
    data: toLight(plot.data),
    layout: layoutOf(card, plot, width, height),
    config: { typesetMath: false },
  };
  const address = await window.Plotly.toImage(figure, { format: "svg", width, height });
  const halo =
    ".annotation-text{paint-order:stroke;stroke:" + token("--panel") + ";stroke-width:3px;stroke-linejoin:round}";
  const svg = decodeURIComponent(address.slice(address.indexOf(",") + 1));
  const rules = "<style>" + (await fontFace()) + halo + "</style>";
  return { svg: svg.replace(/(<svg[^>]*>)/, "$1" + rules), width, height };
}

export async function saveSvg(card) {
  saveOf(card, (await picture(card)).svg, "image/svg+xml", "svg");
}

export async function savePng(card) {
  const { svg, width, height } = await picture(card);
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  image.src = address;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * width, height: SCALE * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  canvas.toBlob((blob) => saveOf(card, blob, "image/png", "png"), "image/png");
}
