/* The views of the pages of sweeps, in the address. */
(function () {
  const { skip, same, triggers, write } = window.noisescaleAddress;
  const SWEEP = { target: null, regimes: "fit" };
  const SWEEPS = { tab: "own", workload: null };

  function readSweep(search) {
    const query = new URLSearchParams(search || ""), target = query.get("target");
    return {
      target: target !== null && target !== "" && Number.isFinite(Number(target)) ? target : null,
      regimes: query.get("regimes") === "slopes" ? "slopes" : SWEEP.regimes,
    };
  }

  /* What the server shows becomes the choice by set_props: as an output it would close a circle of callbacks. */
  function showTarget(shown) {
    if (!shown) return skip();
    window.dash_clientside.set_props("sweep-target", { value: String(shown.target) });
    return shown.target;
  }

  /* The target that is shown when the address names none stays out of the address. */
  function sweepView(search, target, regimes, shown, view) {
    const by = triggers(), nothing = [skip(), skip(), skip()], first = shown ? String(shown.first) : null;
    if (!window.location.pathname.startsWith("/sweeps/")) return nothing;
    if (!view || by.includes("address.search")) {
      const now = readSweep(search);
      if (view && same(view, now)) return nothing;
      return [now, now.target === null ? first || skip() : now.target, now.regimes];
    }
    if (!target) return nothing;
    const now = { target: target === first ? null : target, regimes: regimes || SWEEP.regimes };
    /* an address may write the same number in another way, or name what is shown anyway */
    if (view.target !== null && Number(view.target) === Number(target)) now.target = view.target;
    if (same(view, now)) return nothing;
    write(now, SWEEP, false);
    return [now, skip(), skip()];
  }

  function readSweeps(search) {
    const query = new URLSearchParams(search || "");
    return { tab: query.get("tab") === "published" ? "published" : SWEEPS.tab, workload: query.get("workload") };
  }

  function sweepsView(search, tab, view) {
    const by = triggers(), nothing = [skip(), skip()];
    if (window.location.pathname !== "/sweeps") return nothing;
    if (!view || by.includes("address.search")) {
      const now = readSweeps(search);
      return view && same(view, now) ? nothing : [now, now.tab];
    }
    const now = { tab: tab || SWEEPS.tab, workload: tab === view.tab ? view.workload : null };
    if (same(view, now)) return nothing;
    write(now, SWEEPS, false);
    return [now, skip()];
  }

  Object.assign(window.dash_clientside.noisescale, { sweepView, sweepsView, showTarget });
})();
