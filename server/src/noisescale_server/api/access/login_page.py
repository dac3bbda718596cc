"""The page at /login: one of a few sentences, a link or a button. It asks for nothing but itself."""

import base64
import hashlib
from html import escape

STYLE = """
:root { color-scheme: light dark; --canvas: #f6f7f9; --panel: #fff; --text: #14171f; --soft: #4b5361; --line: #e4e7ec;
  --button: #14171f; --on-button: #fff; --accent: #2a6bd4; --warn: #8f5f00; --warn-ground: #fbf2da; }
@media (prefers-color-scheme: dark) {
  :root { --canvas: #0e1014; --panel: #15181e; --text: #e9ebef; --soft: #aeb5c1; --line: #252a33;
    --button: #e9ebef; --on-button: #15181e; --accent: #6ca6ff; --warn: #e0b04a; --warn-ground: #302711; }
}
body { font: 14px/20px Inter, system-ui, sans-serif; color: var(--text); background: var(--canvas); margin: 0;
  display: grid; min-height: 100vh; place-items: center; }
main { width: min(25rem, calc(100vw - 28px)); box-sizing: border-box; padding: 24px; background: var(--panel);
  border: 1px solid var(--line); border-radius: 10px; }
.brand { display: flex; align-items: center; gap: 10px; font-weight: 600; margin-bottom: 16px; }
h1 { font-size: 20px; line-height: 28px; font-weight: 650; letter-spacing: -.02em; margin: 0 0 8px; }
p { margin: 8px 0; color: var(--soft); text-wrap: pretty; }
.problem { color: var(--warn); background: var(--warn-ground); border-radius: 6px; padding: 8px 12px; }
code { font-family: ui-monospace, monospace; font-size: .92em; color: var(--text); }
.go { display: block; width: 100%; box-sizing: border-box; margin-top: 16px; padding: 9px 16px; font: inherit;
  font-weight: 600; text-align: center; color: var(--on-button); background: var(--button); border: 0;
  border-radius: 6px; text-decoration: none; cursor: pointer; }
.go:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""
"""The dashboard's tokens: this page is served without it."""

MARK = (
    '<svg width="28" height="28" viewBox="0 0 22 22" aria-hidden="true"><rect width="22" height="22" rx="6" '
    'fill="#14171F"/><path d="M4.5 16.5H10.5V12.5H17.5" fill="none" stroke="#F2994A" stroke-width="2" '
    'stroke-linejoin="round" stroke-linecap="round"/><path d="M4.5 12.5 C7 7.5 11 5.6 17.5 5.4" fill="none" '
    'stroke="#6CA6FF" stroke-width="2.2" stroke-linecap="round"/></svg>'
)


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
        f'<style>{STYLE}</style></head><body><main><div class="brand">{MARK}noisescale</div>'
        f"<h1>Log in</h1>{sorry}{body}</main></body></html>"
    )


def _local(onwards: str) -> str:
    return (
        "<p>Open the link that <code>noisescale up</code> printed in its terminal. It is new at every start.</p>"
        "<p>Already signed in?</p>"
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
