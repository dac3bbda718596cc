/* Price and limits of a run's recommendation: fields that say what the address says, and an address that says what they say. */
(function () {
  const { skip, triggers, write, RUN, LIMITS, QUESTION } = window.noisescaleAddress;
  const PRICES = QUESTION.prices, SWITCHES = QUESTION.switches;
  const isSet = (view, name) => view[name] !== null && view[name] !== undefined;

  function limitsShown(view) {
    if (!view) return Array(LIMITS.length + 3).fill(skip());
    const given = LIMITS.filter((name) => isSet(view, name));
    return [
      ...LIMITS.map((name) => (SWITCHES.includes(name) ? Boolean(view[name]) : isSet(view, name) ? view[name] : "")),
      given.length ? true : skip(),
      given.length ? " · " + given.length + " set" : "",
      PRICES.some((name) => isSet(view, name)),
    ];
  }

  function limitsApplied(...given) {
    const by = triggers(), view = given[given.length - 1], values = given.slice(-1 - LIMITS.length, -1);
    if (!view || !by.length) return;
    const isCleared = by.includes("run-limits-clear.n_clicks"), now = Object.assign({}, view);
    LIMITS.forEach((name, i) => {
      const value = values[i];
      now[name] = isCleared || value === "" || value === null || value === undefined || value === false ? null : Number(value);
    });
    write(now, RUN, false);
  }

  /* The text that the API wrote for a trainer: into the clipboard where the browser allows it, and onto the page. */
  async function copyFlags(flags) {
    if (!flags) return [skip(), skip(), skip()];
    if (flags.text === null) return [flags.said, "", true];
    let said = flags.said;
    try {
      await navigator.clipboard.writeText(flags.text);
    } catch (refused) {
      said = "The browser does not allow copying here: select the text.";
    }
    return [said, flags.text, false];
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.noisescale = Object.assign(window.dash_clientside.noisescale || {}, { limitsShown, limitsApplied, copyFlags });
})();
