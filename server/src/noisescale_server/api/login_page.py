"""The page at /login: one of a few sentences, a link or a button. It asks for nothing but itself."""

import base64
import hashlib
from html import escape

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --accent: #1f5fbf; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ed; --soft: #9aa4af; --line: #3a424c; --accent: #78a9ff; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); margin: 0; display: grid; min-height: 100vh;
  place-items: center; }
main { width: min(30rem, calc(100vw - 3rem)); padding: 1.5rem 0; }
h1 { font-size: 1.25rem; margin: 0 0 .75rem; }
p { margin: .5rem 0; color: var(--soft); }
.problem { color: var(--text); border-left: 3px solid #c4600a; padding-left: .75rem; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
.go { display: inline-block; margin-top: .75rem; padding: .5rem 1rem; font: inherit; color: var(--accent);
  border: 1px solid var(--line); border-radius: 6px; background: none; text-decoration: none; cursor: pointer; }
.go:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""


def page_headers() -> dict[str, str]:
    """What the page is sent with: its one style by its hash, forms to this server only."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    return {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin", "Cache-Control": "no-store"}


def login_html(*, is_local: bool, link: str, problem: str, onwards: str, start: str | None) -> str:
    """The whole page.

    Args:
        is_local: Of a server for one user.
        link: A one-time link's secret, to be sent by a button.
        problem: What went wrong before; empty: nothing.
        onwards: Where to go afterwards.
        start: Where the organisation's login begins; None without one.
    """
    sorry = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    body = _local(onwards) if is_local else _team(link, onwards, start)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Log in · noisescale</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>noisescale</h1>{sorry}{body}</main></body></html>"
    )


def _local(onwards: str) -> str:
    return (
        "<p>Open the link that <code>noisescale up</code> printed in its terminal. It is new at every start.</p>"
        "<p>Opened here before? A link from another page arrives without its cookie; from here it comes along.</p>"
        f'<a class="go" href="{escape(onwards)}">Continue</a>'
    )


def _team(link: str, onwards: str, start: str | None) -> str:
    if link:
        return (
            "<p>This link logs you in once.</p>"
            '<form method="post" action="/login">'
            f'<input type="hidden" name="link" value="{escape(link)}">'
            f'<input type="hidden" name="next" value="{escape(onwards)}">'
            '<button class="go">Log in</button></form>'
        )
    if start:
        return f'<p>Log in with your organisation.</p><a class="go" href="{escape(start)}">Log in</a>'
    return "<p>Ask an admin of this server for a one-time link.</p>"
