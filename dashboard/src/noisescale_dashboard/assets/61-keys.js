/* Keys for what can also be clicked; none while someone types or while a dialog is open. */
(function () {
  /* s is Sweeps, which people open more often than Settings */
  const PAGES = { o: "/", r: "/runs", c: "/compare", s: "/sweeps", p: "/planner", ",": "/settings" };
  const HELP = [
    ["g, then o, r, c, s, p or ,", "go to Overview, Runs, Compare, Sweeps, Planner or Settings"],
    ["/", "search"],
    ["j, k, x, c, Enter", "in Runs: next, previous, choose, compare what is chosen, open"],
    ["[, ]", "on a run: the one before or after it in the list"],
    ["e", "menu of the card under the pointer, or of the first one"],
    ["t", "light or dark"],
    ["Esc", "close; release a pinned moment"],
    ["?", "this list"],
  ];
  let waitsForPage = false;

  const isTyping = (target) => target.closest && target.closest("input, textarea, select, [contenteditable], [role=listbox], [role=slider], dialog");

  function openMenu() {
    const menu = document.querySelector(".card:hover .card-menu") || document.querySelector(".card .card-menu");
    if (!menu) return;
    menu.setAttribute("open", "");
    menu.querySelector("button").focus();
  }

  function showHelp() {
    const dialog = document.createElement("dialog"), title = document.createElement("h2"), list = document.createElement("dl");
    dialog.className = "as-table keys";
    title.className = "tt";
    title.id = "keys-title";
    title.textContent = "Keys";
    dialog.setAttribute("aria-labelledby", title.id);
    HELP.forEach(([key, meaning]) => {
      list.appendChild(document.createElement("dt")).textContent = key;
      list.appendChild(document.createElement("dd")).textContent = meaning;
    });
    const close = document.createElement("button");
    close.className = "btn";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(title, list, close);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.appendChild(dialog);
    dialog.showModal();
  }

  function goTo(letter) {
    const link = PAGES[letter] && document.querySelector('.nav a[href="' + PAGES[letter] + '"]');
    if (link) link.click();
  }

  const KEYS = {
    "/": () => { const search = Array.from(document.querySelectorAll(".search input, input.search")).find((one) => one.offsetParent); if (search) search.focus(); },
    e: openMenu,
    t: () => document.getElementById("theme-toggle").click(),
    "?": showHelp,
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    if (waitsForPage) {
      waitsForPage = false;
      /* the letter means nothing else now: c would also compare the chosen runs */
      event.preventDefault();
      goTo(event.key);
    } else if (event.key === "g") {
      waitsForPage = true;
      window.setTimeout(() => { waitsForPage = false; }, 1500);
    } else if (KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
})();
