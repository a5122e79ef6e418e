"""A page for people: what the model is, how fast it answers, and a row to try.

It is the same for every model and holds nothing of it: its script asks the service, with
the token that the person gives where one is needed. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

from importlib import resources

from mlopt.report.style import STYLE

FORMS = """
[hidden] { display: none !important; }
form { display: grid; gap: 12px 16px; margin: 12px 0 0;
  grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); }
label { display: block; color: var(--soft); font-size: 13px; }
input, select, button { width: 100%; font: inherit; color: var(--ink); margin-top: 3px;
  background: var(--paper); border: 1px solid var(--rule); border-radius: 7px;
  padding: 7px 9px; }
button { background: var(--accent); color: var(--card); border: 0; font-weight: 600;
  cursor: pointer; align-self: end; padding: 9px; }
input:focus, select:focus, button:focus {
  outline: 2px solid var(--accent); outline-offset: 1px; }
#answer { margin-top: 16px; min-height: 3em; }
#answer b { font-size: 26px; font-weight: 650; letter-spacing: -.02em; }
.share { display: grid; grid-template-columns: 12em 1fr 4em; gap: 10px; align-items: center;
  font-size: 13.5px; margin-top: 4px; }
.share div { background: var(--rule); border-radius: 4px; height: 10px; overflow: hidden; }
.share i { display: block; height: 100%; background: var(--c0); }
.error { color: var(--bad); }
#login { max-width: 26em; }
"""

SCRIPT = resources.files(__package__).joinpath("page.js").read_text("utf-8")


def _tile(name: str, place: str, note: str) -> str:
    shown = f"<dd id={place} class=long>–</dd>"
    return f"<div class=tile><dt>{name}</dt>{shown}<p>{note}</p></div>"


TILES = "".join(
    _tile(*tile)
    for tile in (
        ("Requests a second", "rate", "answered in the last second"),
        ("Rows a call", "rows", "gathered from many requests"),
        ("Median", "p50", "from headers to answer"),
        ("99th percentile", "p99", "of the last second"),
        ("Credits taken", "open", "rows that wait or run"),
        ("Refused", "refused", "with 503, since the start"),
    )
)


def _chart(name: str, place: str) -> str:
    return (
        f"<div class=card><h3>{name}</h3><figure><svg viewBox='0 0 600 70' role=img "
        f"aria-label='{name}'><line class=grid x1=0 y1=66 x2=600 y2=66></line>"
        f"<polyline class=curve id={place} points=''></polyline></svg></figure></div>"
    )


PAGE = f"""<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>mlopt serve</title>
<link rel=icon href="data:,">
<style>{STYLE}{FORMS}</style>
</head>
<body>
<main>
<header><p class=kicker>mlopt serve</p><h1 id=title>A model</h1><p class=lead id=lead></p>
<form id=login hidden><label>Token<input id=token type=password autocomplete=off></label>
<button type=submit>Show</button></form></header>
<dl class=tiles>{TILES}</dl>
<section><h2>The last minute</h2><div class=pair>
{_chart("Requests a second", "rates")}
{_chart("99th percentile of latency", "waits")}
</div></section>
<section><h2>Try a row</h2><p class=note>Empty fields are missing values.</p>
<form id=row></form><div id=answer aria-live=polite></div></section>
<section><h2>The model</h2>
<div class=wide><table><tbody id=card></tbody></table></div></section>
</main>
<script>{SCRIPT}</script>
</body>
</html>
"""
