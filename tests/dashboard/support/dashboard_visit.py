"""One open page of the dashboard, and what went wrong or out while it was open."""

import asyncio

from playwright.async_api import Page

from fakes_runs import RUNS
from fakes_sweeps import SWEEPS

RUN = f"/runs/{RUNS[0].id}"
FINISHED = next(f"/runs/{run.id}" for run in RUNS if run.status == "finished" and run.resolved)
SWEEP = f"/sweeps/{SWEEPS[0].id}"
BRANCH = f"/sweeps/{SWEEPS[2].id}"
COMPARED = f"/compare?runs={','.join(run.id for run in RUNS[:3])}"
PLANNER = f"/planner?run={RUNS[0].id}&deadline_h=18&budget_usd=700"
CONFIGURATIONS = f"{COMPARED}&tab=config"
PUBLISHED = "/sweeps?tab=published"
REPORT = f"{RUN}/report"
NOBODYS_RUN, NOBODYS_SWEEP = (f"/{kind}/00000000-0000-4000-8000-999999999999" for kind in ("runs", "sweeps"))
NO_PAGE = "/elsewhere"
DRAWN = {
    "/": ("#overview-misfit .trace", "#overview-small .trace", ".events li"),
    "/runs": (".ag-row .spark",),
    RUN: (
        "#run-noise .scatterlayer .trace",
        "#run-layers .heatmaplayer image",
        "#run-bullet .trace",
        "#run-advice-top .big",
    ),
    FINISHED: ("#run-against .trace", "#run-tradeoff .trace", "#run-rate .trace"),
    "/sweeps": ("#sweeps-table tbody td",),
    SWEEP: ("#sweep-hyperbola .trace", "#sweep-steps .trace", "#sweep-rates .trace", "#sweep-quality .trace"),
    BRANCH: ("#sweep-arms .trace",),
    "/compare": ("#compare-body:not(.loading) .trace",),
    CONFIGURATIONS: ("#compare-config .trace", "#compare-config-table td"),
    PUBLISHED: ("#published-table td",),
    "/planner": ("#planner-pareto .trace", "#planner-binds .xtick", "#planner-policies td"),
    "/planner/first": ("#first-headline",),
    "/reproduce": ("#reproduce-scatter .trace", "#reproduce-statistics td", "#reproduce-more td"),
    "/cost": ("#cost-money-figure .trace", "#cost-records-figure .trace", "#cost-table td", "#cost-steps td"),
    "/record": ("#record-odds-figure .trace", "#record-table td"),
    "/learn": ("#learn-noise .trace", "#learn-arrows .trace", "#learn-curve .trace", "#noise-scale"),
    "/settings": ("#settings-connection pre",),
    REPORT: ("figure svg",),
    NOBODYS_RUN: (".empty h1",),
    NOBODYS_SWEEP: (".empty h1",),
    NO_PAGE: (".empty h1",),
}
"""What is there once a page is drawn; for an address with a query that is not here, the marks of its path."""
PAGES = (*(path for path in DRAWN if path not in (FINISHED, "/planner")), COMPARED, PLANNER)
"""Every page, and those that show that there is none."""


class Visit:
    """One open page and what went wrong or out while it was open."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        self.urls: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.urls.append(request.url))

    def strangers(self) -> set[str]:
        """Requests beyond this machine."""
        return {url for url in self.urls if not url.startswith((self.address, "data:", "blob:"))}

    def _hear(self, message: object) -> None:
        kind, text, url = message.type, message.text, message.location["url"]  # type: ignore[attr-defined]
        # a page that is not there is answered 404, which the browser notes
        if kind in ("error", "warning") and url != self.address + NO_PAGE:
            self.complaints.append(f"{kind}: {text}")

    async def open(self, path: str) -> Page:
        await self.page.goto(self.address + path)
        for mark in DRAWN.get(path) or DRAWN[path.split("?")[0].split("#")[0]]:
            await self.page.wait_for_selector(mark, state="attached", timeout=20_000)
        return self.page


async def type_in_one_go(page: Page, *keys: str) -> None:
    """As a person does: waiting for the page to take each key lasts too long where it still draws."""
    await asyncio.gather(*(page.keyboard.press(key) for key in keys))
