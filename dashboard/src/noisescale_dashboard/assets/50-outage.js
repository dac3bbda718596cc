/* When the server or its database is gone: a banner that says until when the page was true, and recovery by itself.
   Every answer of a callback says in a header whether the API answered it; while nothing else asks, a beat does. */
(function () {
  const CALLBACK = "_dash-update-component", HEADER = "X-Noisescale-Api";
  const IDLE_MS = 15000, LOST_MS = 2000, RECOVERY_MS = 5000;
  /* what makes a page ask again, by the first part of its address, of a single thing and of a list */
  const PULSES = { "": "overview-pulse", runs: "runs-pulse", "runs/": "run-pulse", compare: "compare-pulse", "sweeps/": "sweep-pulse" };
  /* how many callbacks wait for their answer: news are not asked for on top of them */
  const callbacks = window.noisescaleCallbacks = { pending: 0, lost: false };
  let heardAt = 0, beatAt = Date.now(), lostAt = 0, hasMissed = false, recoveredAt = 0, waiting = 0;

  const clock = (ms) => new Date(ms).toTimeString().slice(0, 8);

  /* of a page without any data nothing is shown until a moment */
  function words() {
    if (!heardAt || document.querySelector(".card.failed")) return "The server does not answer. The page loads by itself as soon as it does.";
    return "Live updates paused. Shown: data until " + clock(heardAt) + ". They go on by themselves; training is not affected.";
  }

  function show() {
    const banner = document.getElementById("outage");
    if (!banner) return;
    callbacks.lost = lostAt > 0;
    document.body.classList.toggle("is-paused", callbacks.lost);
    banner.hidden = !callbacks.lost;
    const said = document.getElementById("outage-words"), now = callbacks.lost ? words() : "";
    if (said.textContent !== now) said.textContent = now;
  }

  function lose(isBeat) {
    lostAt = lostAt || Date.now();
    hasMissed = hasMissed || !isBeat;
    show();
  }

  function hear() {
    heardAt = Date.now();
    if (!lostAt) return;
    lostAt = 0;
    show();
    recoverSoon();
  }

  /* where one thing alone fails, all others recover at once: without a pause the page would ask without end */
  function recoverSoon() {
    const rest = recoveredAt + RECOVERY_MS - Date.now();
    window.clearTimeout(waiting);
    if (rest > 0) waiting = window.setTimeout(() => { if (!lostAt) recoverSoon(); }, rest);
    else {
      recoveredAt = Date.now();
      recover();
    }
  }

  /* a page that shows no data yet, or that does not ask by itself, is loaded again: its address holds its view */
  function recover() {
    const parts = window.location.pathname.split("/").filter(Boolean);
    const pulse = PULSES[(parts[0] || "") + (parts.length > 1 ? "/" : "")];
    const missed = hasMissed;
    hasMissed = false;
    if (document.querySelector(".card.failed") || (missed && !pulse)) window.location.reload();
    else if (pulse) window.dash_clientside.set_props(pulse, { data: Date.now() });
  }

  const ask = window.fetch;
  window.fetch = function (resource, options) {
    const answer = ask.apply(this, arguments);
    const url = typeof resource === "string" ? resource : (resource && resource.url) || "";
    if (!url.includes(CALLBACK)) return answer;
    const isBeat = Boolean(options && typeof options.body === "string" && options.body.startsWith('{"output":"beat-answer.data"'));
    if (!isBeat) {
      callbacks.pending += 1;
      const settle = () => { callbacks.pending -= 1; };
      answer.then(settle, settle);
    }
    answer.then(
      (response) => {
        const said = response.headers.get(HEADER);
        if (response.status >= 500 || said === "down") lose(isBeat);
        else if (said === "up") hear();
      },
      (error) => { if (!error || error.name !== "AbortError") lose(isBeat); },
    );
    return answer;
  };

  window.setInterval(() => {
    if (document.hidden || !document.getElementById("outage")) return;
    const now = Date.now(), last = lostAt ? beatAt : Math.max(beatAt, heardAt);
    if (lostAt) show();
    if (now - last < (lostAt ? LOST_MS : IDLE_MS)) return;
    beatAt = now;
    window.dash_clientside.set_props("beat", { data: now });
  }, 500);
})();
