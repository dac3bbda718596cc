"""Takes the pictures of docs/pictures.md: every page, both themes, wide and narrow.

    noisescale demo --data                       # a server with real runs, sweeps and a branch
    python docs/take_pictures.py LINK            # the link that it printed

Needs `playwright`, Chromium and Pillow. Pictures have 128 colours: a third of the size, and nobody sees it.
"""

import argparse
import asyncio
import io
import json
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image
from playwright.async_api import Page, async_playwright

HERE = Path(__file__).parent
IMAGES = HERE / "images"
WIDTHS = {1440: "", 390: "-390"}
THEMES = ("light", "dark")
TALLEST = 2_400
CHROMIUM = "/usr/bin/chromium"
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]

PAGES = {
    "overview": ("/", "Overview: which runs are off"),
    "runs": ("/runs", "Runs"),
    "run": ("/runs/{run}", "A run: its noise scale over training, and what to do"),
    "compare": ("/compare?runs={runs}", "Compare: runs side by side"),
    "tasks": ("/compare?tab=tasks", "Compare: across tasks"),
    "sweeps": ("/sweeps", "Sweeps"),
    "sweep": ("/sweeps/{sweep}", "A sweep: the critical batch, measured"),
    "planner": ("/planner", "Planner"),
    "first": ("/planner/first", "A language model's first batch"),
    "cost": ("/cost", "Time and cost"),
    "record": ("/record", "How often were we right here?"),
    "learn": ("/learn", "Learn"),
    "settings": ("/settings", "Settings"),
}


async def take(link: str, names: list[str]) -> None:
    """Take the pictures of these pages.

    Args:
        link: Logs in; of a server with data.
        names: Of `PAGES`.
    """
    parts = urlsplit(link)
    base = f"{parts.scheme}://{parts.netloc}"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        for width, suffix in WIDTHS.items():
            for theme in THEMES:
                context = await browser.new_context(viewport={"width": width, "height": 1_000}, color_scheme=theme)
                page = await context.new_page()
                await page.goto(link)
                known = await ids(page, base)
                for name in names:
                    await page.goto(base + PAGES[name][0].format_map(known))
                    await settled(page)
                    save(await page.screenshot(full_page=True), IMAGES / f"{name}{suffix}-{theme}.png")
                await context.close()
        await browser.close()


async def ids(page: Page, base: str) -> dict[str, str]:
    """A run with a resolved noise scale and a sweep, as the server lists them."""
    answers = []
    for path in ("/api/v1/runs?limit=100&sort=-noise_scale", "/api/v1/sweeps?limit=20"):
        answers.append(json.loads(await page.evaluate(f"fetch({base + path!r}).then(answer => answer.text())")))
    runs = [run for run in answers[0]["runs"] if run["noise_scale"]["state"] == "resolved"]
    sweeps = [sweep for sweep in answers[1]["sweeps"] if sweep["kind"] == "sweep"]
    largest = max(sweeps, key=lambda sweep: sweep["num_runs"], default={"id": ""})
    together = "%2C".join(run["id"] for run in runs[:3])
    return {"run": runs[0]["id"], "runs": together, "sweep": largest["id"]}


async def settled(page: Page) -> None:
    """Wait until nothing is asked for any more, and a second for what is drawn."""
    await page.wait_for_load_state("networkidle", timeout=60_000)
    await page.wait_for_timeout(1_500)


def save(picture: bytes, path: Path) -> None:
    """Write a picture with 128 colours, cut at the foot where it is very tall."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.crop((0, 0, image.width, min(image.height, TALLEST)))
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def write_page() -> None:
    """Write docs/pictures.md."""
    lines = [
        "# Every page\n",
        "In both themes, wide and narrow, with the demo's data; `docs/take_pictures.py` takes them.\n",
    ]
    for name, (_, title) in PAGES.items():
        if (IMAGES / f"{name}-light.png").exists():
            lines += [f"## {title}\n", f"![{title}](images/{name}-light.png)\n"]
            others = (f"[{words}](images/{name}{kind}.png)" for words, kind in OTHERS.items())
            lines.append(" · ".join(others) + "\n")
    (HERE / "pictures.md").write_text("\n".join(lines))


OTHERS = {"dark": "-dark", "narrow": "-390-light", "narrow and dark": "-390-dark"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("link")
    parser.add_argument("names", nargs="*", help="of pages; all without")
    given = parser.parse_args()
    asyncio.run(take(given.link, given.names or list(PAGES)))
    write_page()
