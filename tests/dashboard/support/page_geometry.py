"""What is cut, overlaps, is blank or scrolls sideways on an open page, by its geometry."""

from playwright.async_api import Page

CUT = """() => {
  const found = [];
  const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getBoundingClientRect().width > 0;
  const own = (one) => Array.from(one.childNodes).filter((n) => n.nodeType === 3).map((n) => n.data).join("").trim();
  const titled = (one) => one.closest("[title]") !== null;
  document.querySelectorAll("#content *").forEach((one) => {
    if (!shown(one) || one.closest(".sr-only, svg")) return;
    const style = getComputedStyle(one);
    const isCut = one.scrollWidth > one.clientWidth + 1 && style.overflowX !== "visible" && own(one);
    const scrolls = ["auto", "scroll"].includes(style.overflowX);
    if (isCut && one.tagName !== "INPUT" && !scrolls) {
      const text = own(one);
      one.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
      if (/^[>$\\u2212+\\d.,kMG\\u2013%\\u00d7\\s]+$/.test(text)) found.push("a number is cut: " + text);
      else if (style.textOverflow !== "ellipsis") found.push("cut without an ellipsis: " + text);
      else if (!titled(one)) found.push("cut without a tooltip: " + text);
    }
    if (own(one).endsWith("\\u2026") && !titled(one) && !one.matches("button, summary, .waiting, [placeholder]")) {
      found.push("shortened without a tooltip: " + own(one));
    }
    if (one.matches(".ag-cell") && one.scrollWidth > one.clientWidth + 1) found.push("a cell is cut: " + one.innerText);
    if (one.tagName === "INPUT" && one.type === "text" && one.scrollWidth > one.clientWidth + 1) {
      one.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
      if (!one.value) found.push("a placeholder is cut: " + one.placeholder);
      else if (!one.title) found.push("a choice is cut without a tooltip: " + one.value);
    }
  });
  document.querySelectorAll("#content .js-plotly-plot").forEach((plot) => {
    (plot.layout.annotations || []).forEach((note) => {
      if (note.text.includes("\\u2026") && !note.hovertext) found.push("a label without a tooltip: " + note.text);
    });
  });
  return found;
}"""
OVERLAPPING = """() => {
  const found = [];
  const boxes = (root, query) => Array.from(root.querySelectorAll(query)).map((one) => {
    const box = one.getBoundingClientRect();
    return { one, text: one.textContent, box };
  }).filter(({ one, box, text }) => one.checkVisibility({ visibilityProperty: true }) && box.width > 0 && text.trim());
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const check = (all) => all.forEach((one, i) => all.slice(i + 1).forEach((other) => {
    if (one.one.contains(other.one) || other.one.contains(one.one)) return;
    if (overlap(one.box, other.box)) found.push("overlap: " + one.text + " / " + other.text);
  }));
  document.querySelectorAll("#content .js-plotly-plot").forEach((plot) => {
    const labels = boxes(plot, ".annotation-text, .xtick text, .ytick text");
    check(labels);
    const whole = plot.getBoundingClientRect();
    labels.forEach(({ text, box }) => {
      const isOut = box.left < whole.left - 1 || box.right > whole.right + 1;
      if (isOut) found.push("a label is cut by its figure: " + text);
    });
  });
  document.querySelectorAll("#content .ag-row, #content .changes li, #content .fact").forEach((row) =>
    check(boxes(row, "a, b, .chip, .pill, .dim, .btn, .k, .v, .s")));
  document.querySelectorAll("#content .hd, #content .head").forEach((head) =>
    check(boxes(head, "h1, h2, .st, .lede, button, label, input")));
  document.querySelectorAll("#content .hd > .ac + .card-menu").forEach((menu) => {
    const beside = menu.previousElementSibling.getBoundingClientRect();
    const isAlone = beside.height > 0 && menu.getBoundingClientRect().top >= beside.bottom;
    if (isAlone) found.push("a menu stands alone below the controls of its card: " + menu.parentElement.innerText);
  });
  return found;
}"""
BLANK = """() => {
  const found = [];
  if (document.querySelector("#content [id$=-body].loading")) found.push("the page is still loading");
  document.querySelectorAll("#content .card").forEach((card) => {
    const box = card.getBoundingClientRect();
    if (!card.checkVisibility({ visibilityProperty: true }) || box.height < 30) return;
    const body = card.querySelector(":scope > .bd") || card;
    const drawn = body.querySelector("svg .trace, svg .annotation-text, svg path[d], table td, input, img, .ag-row");
    if (!drawn && !body.innerText.trim()) {
      const title = card.querySelector("h2");
      found.push("a blank card: " + (title ? title.innerText : card.id));
    }
  });
  document.querySelectorAll("#content .js-plotly-plot").forEach((plot) => {
    if (!plot.checkVisibility({ visibilityProperty: true }) || plot.getBoundingClientRect().height < 30) return;
    const drawn = plot.querySelector(".point, .js-line, .js-fill, image, .hm image, .errorbar, .shapelayer path");
    const said = Array.from(plot.querySelectorAll(".annotation-text")).some((one) => one.textContent.length > 16);
    if (!drawn && !said) found.push("a figure without data says nothing: " + plot.parentElement.id);
  });
  if (window.innerWidth >= 1200) {
    document.querySelectorAll("#content .scrollx-in").forEach((box) => {
      if (!box.checkVisibility({ visibilityProperty: true })) return;
      const name = box.id || box.innerText.slice(0, 40);
      if (box.scrollWidth > box.clientWidth + 1) found.push("a table is wider than its card: " + name);
    });
  }
  return found;
}"""


async def complaints(page: Page) -> list[str]:
    """What a reader would see wrong in the shape of the page that is open."""
    # the pointer is nowhere: what it shows is no part of the page
    await page.mouse.move(0, 0)
    await page.evaluate("document.fonts.ready")
    found: list[str] = []
    for question in (CUT, OVERLAPPING, BLANK):
        found += await page.evaluate(question)
    size = page.viewport_size
    assert size is not None
    if await page.evaluate("document.documentElement.scrollWidth") > size["width"]:
        found.append("the page scrolls sideways")
    return found
