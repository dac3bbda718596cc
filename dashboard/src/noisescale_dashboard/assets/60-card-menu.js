/* The menu of a card: its figure as a picture, its data as a file or a table, the link to the view, how it is computed. Nothing leaves this machine. */
(function () {
  const HEAD = 54, FOOT = 26, SCALE = 2;
  const FONT = "/assets/fonts/inter.woff2";

  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "$\u2060");
  /* Pictures stand on light ground, whatever the page shows. */
  const token = (name) => window.noisescaleTheme.toLight({ color: window.getComputedStyle(document.documentElement).getPropertyValue(name).trim() }).color;
  const now = () => new Date().toISOString().slice(0, 16).replace("T", " ") + " UTC";
  const words = (card, part) => { const found = card.querySelector(part); return found ? found.textContent.trim() : ""; };
  const plot = (card) => card.querySelector(".js-plotly-plot");

  function fileName(card, ending) {
    const said = [words(document, ".crumb-end"), words(card, ".tt")].filter(Boolean).join(" ");
    const slug = said.toLowerCase().normalize("NFKD").replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 80);
    return "noisescale-" + (slug || "figure") + "." + ending;
  }

  function save(content, type, name) {
    const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    const anchor = Object.assign(document.createElement("a"), { href: address, download: name });
    document.body.appendChild(anchor);
    anchor.click();
    anchor.remove();
    window.setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  /* -- pictures -- */

  async function fontFace() {
    const bytes = new Uint8Array(await (await fetch(FONT)).arrayBuffer());
    let binary = "";
    for (let start = 0; start < bytes.length; start += 32768) binary += String.fromCharCode(...bytes.subarray(start, start + 32768));
    return "@font-face{font-family:Inter;font-weight:400 700;src:url(data:font/woff2;base64," + btoa(binary) + ") format('woff2')}";
  }

  function heading(text, size, color, shift, left) {
    return { x: 0, y: 1, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", xshift: 16 - left, yshift: shift,
      text, showarrow: false, font: { size, color, family: "Inter, system-ui, sans-serif" } };
  }

  /* The figure with its card's title, since that is text of the page, on the card's ground. */
  async function picture(card) {
    const drawn = plot(card), layout = structuredClone(window.noisescaleTheme.toLight(drawn.layout)), margin = layout.margin || {};
    const top = margin.t || 0, width = Math.round(drawn.clientWidth), height = Math.round(drawn.clientHeight) + HEAD + FOOT;
    delete layout.meta;
    Object.assign(layout, { width, height, autosize: false, paper_bgcolor: token("--panel"), margin: Object.assign({}, margin, { t: top + HEAD, b: (margin.b || 0) + FOOT }) });
    layout.annotations = (layout.annotations || []).concat([
      heading("<b>" + plain(words(card, ".tt")) + "</b>", 14, token("--t1"), top + 24, margin.l || 0),
      heading(plain(words(card, ".st")), 12, token("--t3"), top + 6, margin.l || 0),
      /* what the picture is of, and of when: it will be seen without its page */
      Object.assign(heading(plain(said()), 11, token("--t3"), -(margin.b || 0) - 20, margin.l || 0), { y: 0 }),
    ]);
    const address = await window.Plotly.toImage({ data: window.noisescaleTheme.toLight(drawn.data), layout, config: { typesetMath: false } }, { format: "svg", width, height });
    const style = "<style>" + await fontFace() + ".annotation-text{paint-order:stroke;stroke:" + token("--panel") + ";stroke-width:3px;stroke-linejoin:round}</style>";
    const svg = decodeURIComponent(address.slice(address.indexOf(",") + 1));
    return { svg: svg.replace(/(<svg[^>]*>)/, "$1" + style), width, height };
  }

  async function saveSvg(card) {
    save((await picture(card)).svg, "image/svg+xml", fileName(card, "svg"));
  }

  async function savePng(card) {
    const { svg, width, height } = await picture(card);
    const image = new Image(), address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    image.src = address;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * width, height: SCALE * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    canvas.toBlob((blob) => save(blob, "image/png", fileName(card, "png")), "image/png");
  }

  const said = () => [words(document, ".crumb-end") || words(document, "h1"), now(), "noisescale"].filter(Boolean).join(" · ");

  /* -- data -- */

  function columnsOf(drawn) {
    const meta = drawn.layout && drawn.layout.meta;
    return (meta && meta.columns) || [];
  }

  /* Rows of the card's data, names first. */
  function rowsOf(card) {
    const drawn = plot(card);
    if (drawn) {
      const columns = columnsOf(drawn), length = columns.length ? columns[0][1].length : 0;
      return [columns.map((column) => column[0])].concat(Array.from({ length }, (_, i) => columns.map((column) => column[1][i])));
    }
    return Array.from(card.querySelectorAll("table tr")).map((row) => Array.from(row.cells).map((cell) => cell.innerText.replace(/\s+/g, " ").trim()));
  }

  function csvCell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value !== "string") return String(value);
    /* a spreadsheet must not run what someone has called a layer; a number with its sign stays one */
    const safe = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? "'" + value : value;
    return /[",\n\r]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  }

  const csv = (rows) => rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
  const saveCsv = (card) => save(csv(rowsOf(card)), "text/csv;charset=utf-8", fileName(card, "csv"));

  /* Column by column, with what the card says of them and the address of the view. */
  function saveJson(card) {
    const [names, ...rows] = rowsOf(card), columns = Object.fromEntries(names.map((name, i) => [name, rows.map((row) => row[i])]));
    const about = { title: words(card, ".tt"), subtitle: words(card, ".st"), of: words(document, ".crumb-end"), address: window.location.href, at: new Date().toISOString() };
    save(JSON.stringify({ ...about, columns }, null, 1), "application/json", fileName(card, "json"));
  }

  function shownCell(value) {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    return typeof value === "number" ? Number(value.toPrecision(5)).toLocaleString("en-US", { maximumSignificantDigits: 5 }) : String(value);
  }

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function tableOf(rows) {
    const table = element("table", "tb"), head = table.createTHead().insertRow(), body = table.createTBody();
    rows[0].forEach((name) => head.appendChild(Object.assign(element("th", "", name), { scope: "col" })));
    rows.slice(1).forEach((row) => { const line = body.insertRow(); row.forEach((value) => { line.insertCell().textContent = shownCell(value); }); });
    return table;
  }

  function showTable(card) {
    const dialog = element("dialog", "as-table"), title = element("h2", "tt", words(card, ".tt")), rows = rowsOf(card);
    title.id = "as-table-title";
    dialog.setAttribute("aria-labelledby", title.id);
    const inside = element("div", "scroll");
    inside.tabIndex = 0;
    inside.appendChild(tableOf(rows));
    const bar = element("div", "row"), file = element("button", "btn", "Data as CSV"), close = element("button", "btn", "Close");
    file.addEventListener("click", () => saveCsv(card));
    close.addEventListener("click", () => dialog.close());
    bar.append(element("span", "dim", rows.length - 1 + (rows.length === 2 ? " row" : " rows")), element("span", "sp"), file, close);
    dialog.append(title, element("p", "st", words(card, ".st")), inside, bar);
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", () => dialog.remove());
    document.body.appendChild(dialog);
    dialog.showModal();
    close.focus();
  }

  async function copyLink(card, button) {
    const before = Array.from(button.childNodes);
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(window.location.href);
    } catch (refused) {
      said = "Copy it from the address bar";
    }
    button.textContent = said;
    window.setTimeout(() => button.replaceChildren(...before), 1500);
  }

  /* The text stands in the menu's place until it is closed; then the menu is itself again. */
  function explain(card, button) {
    const menu = button.closest("details");
    menu.classList.add("explains");
    menu.querySelector(".how-computed").focus();
  }

  document.addEventListener("toggle", (event) => { if (!event.target.open) event.target.classList.remove("explains"); }, true);

  const ACTIONS = { png: savePng, svg: saveSvg, csv: saveCsv, json: saveJson, table: showTable, link: copyLink, how: explain };

  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-card-action]");
    if (!button) return;
    const action = button.dataset.cardAction, card = button.closest(".card");
    ACTIONS[action](card, button);
    if (action === "link" || action === "how") return;
    const menu = button.closest("details");
    menu.removeAttribute("open");
    if (action !== "table") menu.querySelector("summary").focus();
  });
})();
