/** Colours and elements of every page. */
export const BASE_CSS: string = `:root {
  color-scheme: light dark;
  --bg: #f4f5f1; --surface: #fff; --sunken: #f0f2ec; --line: #dfe3d9; --ink: #17211c; --muted: #5b685f;
  --accent: #0b7a5c; --accent-ink: #fff; --accent-soft: #e0f2ea;
  --good: #0a7a43; --good-soft: #dcf3e4; --bad: #b3261e; --bad-soft: #fbe5e2;
  --wait: #8a5a00; --wait-soft: #fbeecb; --off: #59635d; --off-soft: #e7eae4;
  --shadow: 0 1px 2px rgb(20 35 28 / .05), 0 4px 16px rgb(20 35 28 / .05);
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #101512; --surface: #19201c; --sunken: #131a16; --line: #2c3731; --ink: #e7ede9; --muted: #9aa8a0;
    --accent: #3fc795; --accent-ink: #06261b; --accent-soft: #143529;
    --good: #5fd695; --good-soft: #12351f; --bad: #ff8f84; --bad-soft: #431a17;
    --wait: #f0bd55; --wait-soft: #3b2c09; --off: #a5b0aa; --off-soft: #29312d; --shadow: none;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1, h2, h3, p { margin: 0; }
a { color: var(--accent); }
code, pre, .mono { font-family: var(--mono); font-size: .87em; }
.mark { width: 2rem; height: 2rem; flex: none; display: block; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
button, .button { font: inherit; font-weight: 600; border: 1px solid var(--line); border-radius: 9px; background: var(--surface); color: var(--ink); padding: .45rem .8rem; min-height: 2.4rem; cursor: pointer; text-decoration: none; display: inline-flex; align-items: center; justify-content: center; gap: .4rem; }
button:hover, .button:hover { border-color: var(--accent); }
button:disabled { opacity: .55; cursor: progress; }
button.primary, .button.primary { background: var(--accent); border-color: var(--accent); color: var(--accent-ink); }
button.primary:hover { filter: brightness(1.07); }
.pill { display: inline-block; font-size: .72rem; font-weight: 700; letter-spacing: .03em; padding: .1rem .5rem; border-radius: 99px; background: var(--off-soft); color: var(--off); white-space: nowrap; }
.pill.good { background: var(--good-soft); color: var(--good); }
.pill.bad { background: var(--bad-soft); color: var(--bad); }
.pill.wait { background: var(--wait-soft); color: var(--wait); }
.pill.fault { background: none; border: 1px solid currentcolor; color: var(--bad); }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (prefers-reduced-motion: reduce) { *, *::before, *::after { animation: none !important; transition: none !important; } }
`;

/** The parts of a page with lists: its bar, cards, rows, forms, facts. */
export const PARTS_CSS: string = `
.top { position: sticky; top: 0; z-index: 5; background: var(--surface); border-bottom: 1px solid var(--line); }
.bar { display: flex; align-items: center; gap: .75rem; padding: .6rem 1.25rem; max-width: 1760px; margin: auto; }
.bar h1 { font-size: 1.05rem; letter-spacing: -.01em; white-space: nowrap; }
.bar .address { color: var(--muted); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar .end { margin-left: auto; display: flex; gap: .5rem; align-items: center; }
.live { font-size: .8rem; color: var(--muted); display: inline-flex; gap: .4rem; align-items: center; white-space: nowrap; }
.live::before { content: ""; width: .55rem; height: .55rem; border-radius: 50%; background: var(--wait); }
.live[data-state="live"]::before { background: var(--good); box-shadow: 0 0 0 3px var(--good-soft); }
.live[data-state="lost"]::before { background: var(--bad); }
.note { padding: .5rem 1rem; border-bottom: 1px solid var(--line); font-size: .8rem; color: var(--muted); overflow-wrap: anywhere; }
.note:empty { display: none; }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow); min-width: 0; scroll-margin-top: 7rem; }
.card > header { display: flex; align-items: center; gap: .6rem; padding: .8rem 1rem; border-bottom: 1px solid var(--line); }
.card > header h2 { font-size: .95rem; }
.card > header .end { margin-left: auto; }
.card > .inner { padding: 1rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: .8rem; }
.count { color: var(--muted); font-size: .85rem; font-variant-numeric: tabular-nums; }
.hint { color: var(--muted); font-size: .85rem; }
label { display: grid; gap: .2rem; font-size: .8rem; font-weight: 600; color: var(--muted); min-width: 0; }
input, select { font: inherit; font-size: .92rem; font-weight: 400; color: var(--ink); background: var(--sunken); border: 1px solid var(--line); border-radius: 8px; padding: .4rem .55rem; min-height: 2.4rem; width: 100%; min-width: 0; }
form { display: grid; grid-template-columns: minmax(0, 1fr); gap: .65rem; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .65rem; align-items: end; }
.check { display: flex; align-items: center; gap: .5rem; font-size: .88rem; color: var(--ink); }
.check input { width: 1.1rem; min-height: 1.1rem; accent-color: var(--accent); flex: none; }
[hidden] { display: none !important; }
.list { display: grid; grid-template-columns: minmax(0, 1fr); }
.list > p.empty { padding: 2rem 1.25rem; text-align: center; color: var(--muted); }
.list > .row ~ .empty { display: none; }
.row { border-bottom: 1px solid var(--line); min-width: 0; }
.row:last-child { border-bottom: 0; }
.row > summary { list-style: none; cursor: pointer; padding: .75rem 1rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: .3rem; }
.row > summary::-webkit-details-marker { display: none; }
.row > summary:hover { background: var(--sunken); }
.row > summary:focus-visible { outline-offset: -2px; border-radius: 8px; }
.row.fresh > summary { animation: fresh 1.6s ease-out; }
@keyframes fresh { from { background: var(--accent-soft); } }
.line { display: flex; align-items: baseline; gap: .5rem; min-width: 0; }
.line .name { font-family: var(--mono); font-weight: 600; font-size: .88rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
.line .end { flex: none; margin-left: auto; white-space: nowrap; font-variant-numeric: tabular-nums; }
.amount { font-weight: 700; }
.sub { color: var(--muted); font-size: .8rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
.local { color: var(--muted); }
.badges { flex-wrap: wrap; gap: .25rem; }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem; }
.actions button, .actions .button { font-size: .82rem; min-height: 2.1rem; padding: .25rem .65rem; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem .9rem; margin: 0; font-size: .82rem; }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
pre .key { color: var(--accent); }
.problem { color: var(--bad); font-size: .85rem; }
.toast { position: fixed; left: 50%; bottom: 1.25rem; transform: translateX(-50%); background: var(--ink); color: var(--bg); padding: .6rem 1rem; border-radius: 10px; font-size: .9rem; max-width: min(92vw, 40rem); box-shadow: 0 8px 30px rgb(0 0 0 / .25); z-index: 9; overflow-wrap: anywhere; }
.toast:empty { display: none; }
.toast.problem { background: var(--bad); color: var(--surface); }
`;
