/* What a card is made of, and the name of a file of it. */

export const plotOf = (card) => card.querySelector(".js-plotly-plot");

/** The text of a part of the card, "" where there is none. */
export function words(card, part) {
  const found = card.querySelector(part);
  return found ? found.textContent.trim() : "";
}

/** A name for a file from what it is of. */
export function slugOf(said) {
  const letters = said
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9]+/g, "-");
  return letters.replace(/^-+|-+$/g, "").slice(0, 80);
}

/** Save a Blob or a text as a file that is named after the card. */
export function saveOf(card, content, type, ending) {
  const said = [words(document, ".crumb-end"), words(card, ".tt")].filter(Boolean).join(" ");
  const download = "noisescale-" + (slugOf(said) || "figure") + "." + ending;
  const href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const anchor = Object.assign(document.createElement("a"), { href, download });
  document.body.appendChild(anchor);
  anchor.click();
  anchor.remove();
  window.setTimeout(() => URL.revokeObjectURL(href), 10000);
}
