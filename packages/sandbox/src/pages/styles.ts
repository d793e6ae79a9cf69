/** Colours and elements that both pages share. */
const BASE = `
:root {
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

export const DASHBOARD_CSS: string = `${BASE}
.top { position: sticky; top: 0; z-index: 5; background: var(--surface); border-bottom: 1px solid var(--line); }
.bar { display: flex; align-items: center; gap: .75rem; padding: .6rem 1.25rem; max-width: 1760px; margin: auto; }
.bar h1 { font-size: 1.05rem; letter-spacing: -.01em; white-space: nowrap; }
.bar .address { color: var(--muted); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar .end { margin-left: auto; display: flex; gap: .5rem; align-items: center; }
.live { font-size: .8rem; color: var(--muted); display: inline-flex; gap: .4rem; align-items: center; white-space: nowrap; }
.live::before { content: ""; width: .55rem; height: .55rem; border-radius: 50%; background: var(--wait); }
.live[data-state="live"]::before { background: var(--good); box-shadow: 0 0 0 3px var(--good-soft); }
.live[data-state="lost"]::before { background: var(--bad); }
.jump { display: none; }
main { display: grid; grid-template-columns: 324px minmax(0, 1fr); gap: 1.25rem; padding: 1.25rem; max-width: 1760px; margin: auto; align-items: start; }
.side, .feed { display: grid; gap: 1.25rem; min-width: 0; }
.lists { display: grid; gap: 1.25rem; min-width: 0; align-items: start; }
@media (min-width: 1180px) { .lists { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
@media (min-width: 1360px) { main { grid-template-columns: 340px minmax(0, 1fr); } .lists { grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); } }
/* Where one list stands above the other, the upper one leaves room for the lower one. */
@media (min-width: 861px) and (max-width: 1179px) { #transactions .list { max-height: 45vh; overflow: auto; } }
.filter { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; position: sticky; top: 3.4rem; z-index: 4; background: var(--bg); padding: .6rem 0; margin: -.6rem 0; }
.filter input[type="search"] { flex: 1 1 14rem; max-width: 26rem; background: var(--surface); }
.filter .hint { margin-left: auto; }
.note { padding: .5rem 1rem; border-bottom: 1px solid var(--line); font-size: .8rem; color: var(--muted); overflow-wrap: anywhere; }
.note:empty { display: none; }
.magic { font-size: .82rem; }
.magic summary { cursor: pointer; font-weight: 600; color: var(--muted); }
.magic ul { list-style: none; margin: .5rem 0 0; padding: 0; display: grid; gap: .5rem; max-height: 22rem; overflow: auto; }
.magic li { display: grid; grid-template-columns: max-content 1fr; align-items: center; gap: .1rem .5rem; }
.magic li span { color: var(--muted); }
.magic li .does { grid-column: 1 / -1; }
.magic button { font-family: var(--mono); font-size: .78rem; min-height: 1.7rem; padding: .05rem .45rem; border-radius: 6px; }
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
.tabs { display: flex; flex-wrap: wrap; gap: .25rem; padding: .25rem; background: var(--sunken); border-radius: 10px; }
.tabs button { flex: 1 1 auto; border: 0; background: none; padding: .25rem .35rem; min-height: 2rem; font-size: .82rem; color: var(--muted); border-radius: 7px; }
.tabs button[aria-selected="true"] { background: var(--surface); color: var(--ink); box-shadow: 0 1px 3px rgb(0 0 0 / .14); }
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
.local { opacity: .8; }
.badges { flex-wrap: wrap; gap: .25rem; }
.path { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem; list-style: none; padding: 0; margin: 0; font-size: .8rem; color: var(--muted); }
.path li { display: inline-flex; align-items: center; gap: .3rem; }
.path li + li::before { content: ""; width: 1rem; height: 1px; background: currentcolor; opacity: .5; }
.path .coming { opacity: .75; }
.path .coming .pill { background: none; border: 1px dashed currentcolor; padding: 0 .45rem; }
.dots { display: inline-flex; gap: .2rem; vertical-align: middle; }
.dot { width: .6rem; height: .6rem; border-radius: 50%; background: var(--bad); }
.dot.good { background: var(--good); }
.dot.next { background: none; border: 1.5px dashed var(--wait); }
.open { padding: .25rem 1rem 1.1rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: .9rem; min-width: 0; }
.actions { display: flex; flex-wrap: wrap; gap: .4rem; }
.actions { align-items: center; }
.actions button, .actions .button { font-size: .82rem; min-height: 2.1rem; padding: .25rem .65rem; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem .9rem; margin: 0; font-size: .82rem; }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.attempt { border: 1px solid var(--line); border-radius: 10px; min-width: 0; overflow: hidden; }
.attempt > summary { cursor: pointer; display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: center; padding: .5rem .75rem; background: var(--sunken); font-size: .82rem; }
.attempt > summary .end { margin-left: auto; color: var(--muted); }
.attempt .part { padding: .55rem .75rem; border-top: 1px solid var(--line); min-width: 0; }
.attempt .part h4 { margin: 0 0 .25rem; font-size: .7rem; letter-spacing: .06em; text-transform: uppercase; color: var(--muted); }
.attempt pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.55; font-size: .78rem; max-height: 28rem; overflow: auto; }
pre .key { color: var(--accent); }
.problem { color: var(--bad); font-size: .85rem; }
.faults { display: grid; gap: .4rem; padding: 0; margin: 0; list-style: none; }
.faults li { display: flex; align-items: center; gap: .5rem; font-size: .85rem; background: var(--bad-soft); color: var(--bad); border-radius: 8px; padding: .2rem .3rem .2rem .65rem; }
.faults button { margin-left: auto; min-height: 2rem; padding: 0 .6rem; background: none; border: 0; color: inherit; font-size: .8rem; text-decoration: underline; }
.secret { display: flex; gap: .4rem; align-items: center; background: var(--sunken); border: 1px solid var(--line); border-radius: 8px; padding: .1rem .1rem .1rem .6rem; }
.secret code { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; flex: 1; min-width: 0; color: var(--ink); font-weight: 400; }
.secret button { min-height: 2.1rem; font-size: .78rem; padding: 0 .6rem; border: 0; background: none; color: var(--accent); }
.field { display: grid; grid-template-columns: minmax(0, 1fr); gap: .2rem; font-size: .8rem; font-weight: 600; color: var(--muted); min-width: 0; }
.toast { position: fixed; left: 50%; bottom: 1.25rem; transform: translateX(-50%); background: var(--ink); color: var(--bg); padding: .6rem 1rem; border-radius: 10px; font-size: .9rem; max-width: min(92vw, 40rem); box-shadow: 0 8px 30px rgb(0 0 0 / .25); z-index: 9; overflow-wrap: anywhere; }
.toast:empty { display: none; }
.toast.problem { background: var(--bad); color: var(--surface); }
@media (max-width: 860px) {
  main { grid-template-columns: minmax(0, 1fr); padding: .75rem; gap: .9rem; }
  .side, .feed, .lists { display: contents; }
  #trigger { order: 1; } .filter { order: 2; } #transactions { order: 3; } #deliveries { order: 4; } #break { order: 5; } #keys { order: 6; } #connect { order: 7; }
  .filter { position: static; padding: 0; margin: 0; }
  .filter input[type="search"] { flex-basis: 100%; max-width: none; }
  .bar { padding: .55rem .75rem; }
  .bar .address, .card > header .hint { display: none; }
  input, select { font-size: 16px; }
  .jump { display: flex; gap: .25rem; overflow-x: auto; padding: 0 .6rem .5rem; scrollbar-width: none; }
  .jump a { flex: none; padding: .35rem .7rem; border-radius: 99px; background: var(--sunken); color: var(--ink); text-decoration: none; font-size: .82rem; font-weight: 600; }
}
`;

export const CHECKOUT_CSS: string = `${BASE}
body { min-height: 100dvh; display: grid; place-items: center; padding: 1rem; }
.checkout-card { width: min(100%, 26rem); background: var(--surface); border: 1px solid var(--line); border-radius: 20px; box-shadow: var(--shadow); overflow: hidden; }
.ribbon { background: var(--wait-soft); color: var(--wait); font-size: .8rem; font-weight: 600; text-align: center; padding: .4rem 1rem; }
.inside { padding: 1.5rem; display: grid; gap: 1.25rem; }
.who { display: flex; align-items: center; gap: .7rem; }
.who h1 { font-size: 1rem; }
.who p { color: var(--muted); font-size: .85rem; overflow-wrap: anywhere; }
.total { font-size: 2.4rem; font-weight: 750; letter-spacing: -.03em; line-height: 1.1; font-variant-numeric: tabular-nums; }
.total small { font-size: 1rem; font-weight: 600; color: var(--muted); letter-spacing: 0; margin-left: .35rem; }
.about { color: var(--muted); overflow-wrap: anywhere; }
fieldset { border: 0; padding: 0; margin: 0; display: grid; gap: .5rem; }
legend { font-weight: 600; font-size: .88rem; padding: 0; margin-bottom: .5rem; }
.medium { display: flex; align-items: center; gap: .8rem; padding: .65rem .8rem; border: 1.5px solid var(--line); border-radius: 12px; cursor: pointer; font-weight: 600; }
.medium:hover { border-color: var(--muted); }
.medium:has(input:checked) { border-color: var(--accent); background: var(--accent-soft); }
.medium:has(input:focus-visible) { outline: 2px solid var(--accent); outline-offset: 2px; }
.medium input { width: 1.15rem; height: 1.15rem; accent-color: var(--accent); margin: 0 0 0 auto; }
.badge { width: 2.1rem; height: 2.1rem; border-radius: 8px; display: grid; place-items: center; background: var(--ink); color: var(--bg); font-size: .75rem; font-weight: 800; flex: none; }
form { display: grid; gap: 1.1rem; }
.choices { display: grid; grid-template-columns: 1fr 1fr; gap: .6rem; }
.choices .primary { grid-column: 1 / -1; min-height: 3.1rem; font-size: 1.05rem; border-radius: 12px; }
.small { font-size: .82rem; color: var(--muted); overflow-wrap: anywhere; }
.result { text-align: center; justify-items: center; }
.sign { width: 4rem; height: 4rem; border-radius: 50%; display: grid; place-items: center; font-size: 2rem; font-weight: 700; background: var(--off-soft); color: var(--off); }
.sign.good { background: var(--good-soft); color: var(--good); }
.sign.bad { background: var(--bad-soft); color: var(--bad); }
.spinner { width: 3.2rem; height: 3.2rem; border-radius: 50%; border: 4px solid var(--line); border-top-color: var(--accent); animation: turn .9s linear infinite; }
@keyframes turn { to { transform: rotate(360deg); } }
.problem { background: var(--bad-soft); color: var(--bad); padding: .6rem .8rem; border-radius: 10px; font-size: .9rem; }
`;
