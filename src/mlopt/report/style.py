"""The look of the report: one set of rules, two sets of colours."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c2330; --soft: #5b6575; --faint: #8a94a5; --rule: #e3e7ee; --paper: #f6f7f9;
  --card: #ffffff; --accent: #1f5fd6; --best: #1c2330; --bad: #c0392b;
  --c0: #2f6fdf; --c1: #e0862b; --c2: #1c9a72; --c3: #a44fc9; --c4: #d64f6f;
  --c5: #4aa7c9; --c6: #8b7a2d; --c7: #6b7280;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e8ecf3; --soft: #a3adbd; --faint: #747f91; --rule: #2b3341; --paper: #12161d;
    --card: #1a2029; --accent: #7aa7ff; --best: #f2f5fa; --bad: #ff7b6b;
    --c0: #6ea3ff; --c1: #f2a555; --c2: #4fd0a3; --c3: #cc8aec; --c4: #f2809b;
    --c5: #7fd0ec; --c6: #cdbb62; --c7: #a3adbd;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1080px; margin: 0 auto; padding: 56px 28px 80px; }
header { margin-bottom: 32px; }
.kicker {
  margin: 0; color: var(--accent); font-weight: 600; font-size: 13px;
  letter-spacing: .08em; text-transform: uppercase;
}
h1 { margin: 4px 0 8px; font-size: 34px; line-height: 1.15; letter-spacing: -.02em; }
h2 { margin: 0 0 4px; font-size: 20px; letter-spacing: -.01em; }
h3 { margin: 0 0 12px; font-size: 14px; font-weight: 600; }
.lead { margin: 0; color: var(--soft); font-size: 17px; max-width: 60em; }
.note { margin: 0 0 16px; color: var(--soft); max-width: 60em; }
.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 0 0 24px;
}
.tile { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: 14px 16px; }
.tile dt { color: var(--soft); font-size: 13px; }
.tile dd { margin: 2px 0 0; font-size: 26px; font-weight: 650; letter-spacing: -.02em;
  line-height: 1.2; }
.tile dd.long { font-size: 17px; line-height: 31px; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }
.tile p { margin: 2px 0 0; color: var(--faint); font-size: 12.5px; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 24px 26px; margin: 0 0 20px; }
figure { margin: 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
.pair { display: grid; gap: 28px 36px; margin-top: 12px;
  grid-template-columns: repeat(2, minmax(0, 1fr)); }
@media (max-width: 760px) { .pair { grid-template-columns: minmax(0, 1fr); } }
.trio { grid-template-columns: repeat(auto-fit, minmax(min(280px, 100%), 1fr)); }
.card { min-width: 0; }
pre.card { margin: 0; overflow-x: auto; font-size: 13px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 14px; padding: 0;
  list-style: none; color: var(--soft); font-size: 13.5px; }
.legend i, .chip { display: inline-block; width: 10px; height: 10px; border-radius: 50%;
  margin-right: 7px; background: currentColor; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; margin-top: 8px; }
th { text-align: left; color: var(--faint); font-weight: 500; font-size: 12.5px;
  padding: 6px 12px 6px 0; border-bottom: 1px solid var(--rule); white-space: nowrap; }
td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
.n { text-align: right; white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
.strong { font-weight: 600; }
td.params { color: var(--soft); padding-left: 12px; min-width: 22em; }
.columns { margin: 4px 0 0; padding-left: 1.1em; color: var(--soft); }
footer { color: var(--faint); font-size: 13px; padding: 8px 4px; }
footer p { margin: 0 0 4px; overflow-wrap: anywhere; }
text { fill: var(--faint);
  font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, sans-serif; }
text.caption { font-size: 12.5px; fill: var(--soft); }
text.name { font-size: 13px; fill: var(--ink); }
.grid { stroke: var(--rule); stroke-width: 1; }
.diagonal { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 4 4; }
.best { fill: none; stroke: var(--best); stroke-width: 1.8; }
.curve { fill: none; stroke: var(--c0); stroke-width: 2; }
.bar { fill: var(--c0); }
.cell { fill: var(--c0); }
.cell-text { fill: var(--ink); font-weight: 600; font-size: 12.5px; }
.cell-text.light { fill: #ffffff; }
.dot { fill: currentColor; stroke: var(--card); stroke-width: 1; }
.dot.hollow { fill: var(--card); stroke: currentColor; stroke-width: 1.5; opacity: .8; }
.dot.pale { fill-opacity: .45; stroke: currentColor; }
.dot.faint { opacity: .35; stroke: none; }
.dot:hover, .lane:hover { stroke: var(--ink); stroke-width: 2; }
.lane { fill: currentColor; opacity: .35; }
.lane.strong { opacity: 1; }
.look { stroke: var(--card); stroke-width: 1.2; }
.cross { fill: none; stroke: var(--bad); stroke-width: 1.8; }
.f0 { color: var(--c0); } .f1 { color: var(--c1); } .f2 { color: var(--c2); }
.f3 { color: var(--c3); } .f4 { color: var(--c4); } .f5 { color: var(--c5); }
.f6 { color: var(--c6); } .f7 { color: var(--c7); }
main .mlopt-plan summary {
  grid-template-columns: 13em minmax(9em, 1fr) minmax(10em, 1.3fr) 4.5em 4.5em 6em; }
.mlopt-plan { max-width: none !important; border: 0 !important; padding: 0 !important; }
@media print { body { background: #fff; } section, .tile { break-inside: avoid; } }
"""
