import { BASE_CSS, PARTS_CSS } from "@payhooks/pages";

export const DASHBOARD_CSS: string = `${BASE_CSS}${PARTS_CSS}
.jump { display: none; }
main { display: grid; grid-template-columns: 324px minmax(0, 1fr); gap: 1.25rem; padding: 1.25rem; max-width: 1760px; margin: auto; align-items: start; }
.side, .feed { display: grid; gap: 1.25rem; min-width: 0; }
.lists { display: grid; gap: 1.25rem; min-width: 0; align-items: start; }
@media (min-width: 1180px) { .lists { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
@media (min-width: 1360px) { main { grid-template-columns: 340px minmax(0, 1fr); } .lists { grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); } }
/* If one list is above the other, the upper one leaves room for the lower one. */
@media (min-width: 861px) and (max-width: 1179px) { #transactions .list { max-height: 45vh; overflow: auto; } }
.filter { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; position: sticky; top: 3.4rem; z-index: 4; background: var(--bg); padding: .6rem 0; margin: -.6rem 0; }
.filter input[type="search"] { flex: 1 1 14rem; max-width: 26rem; background: var(--surface); }
.filter .hint { margin-left: auto; }
.magic { font-size: .82rem; }
.magic summary { cursor: pointer; font-weight: 600; color: var(--muted); }
.magic ul { list-style: none; margin: .5rem 0 0; padding: 0; display: grid; gap: .5rem; max-height: 22rem; overflow: auto; }
.magic li { display: grid; grid-template-columns: max-content 1fr; align-items: center; gap: .1rem .5rem; }
.magic li span { color: var(--muted); }
.magic li .does { grid-column: 1 / -1; }
.magic button { font-family: var(--mono); font-size: .78rem; min-height: 1.7rem; padding: .05rem .45rem; border-radius: 6px; }
.tabs { display: flex; flex-wrap: wrap; gap: .25rem; padding: .25rem; background: var(--sunken); border-radius: 10px; }
.tabs button { flex: 1 1 auto; border: 0; background: none; padding: .25rem .35rem; min-height: 2rem; font-size: .82rem; color: var(--muted); border-radius: 7px; }
.tabs button[aria-selected="true"] { background: var(--surface); color: var(--ink); box-shadow: 0 1px 3px rgb(0 0 0 / .14); }
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
.attempt { border: 1px solid var(--line); border-radius: 10px; min-width: 0; overflow: hidden; }
.attempt > summary { cursor: pointer; display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: center; padding: .5rem .75rem; background: var(--sunken); font-size: .82rem; }
.attempt > summary .end { margin-left: auto; color: var(--muted); }
.attempt .part { padding: .55rem .75rem; border-top: 1px solid var(--line); min-width: 0; }
.attempt .part h4 { margin: 0 0 .25rem; font-size: .7rem; letter-spacing: .06em; text-transform: uppercase; color: var(--muted); }
.attempt pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.55; font-size: .78rem; max-height: 28rem; overflow: auto; }
.faults { display: grid; gap: .4rem; padding: 0; margin: 0; list-style: none; }
.faults li { display: flex; align-items: center; gap: .5rem; font-size: .85rem; background: var(--bad-soft); color: var(--bad); border-radius: 8px; padding: .2rem .3rem .2rem .65rem; }
.faults button { margin-left: auto; min-height: 2rem; padding: 0 .6rem; background: none; border: 0; color: inherit; font-size: .8rem; text-decoration: underline; }
.secret { display: flex; gap: .4rem; align-items: center; background: var(--sunken); border: 1px solid var(--line); border-radius: 8px; padding: .1rem .1rem .1rem .6rem; }
.secret code { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; flex: 1; min-width: 0; color: var(--ink); font-weight: 400; }
.secret button { min-height: 2.1rem; font-size: .78rem; padding: 0 .6rem; border: 0; background: none; color: var(--accent); }
.field { display: grid; grid-template-columns: minmax(0, 1fr); gap: .2rem; font-size: .8rem; font-weight: 600; color: var(--muted); min-width: 0; }
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

export const CHECKOUT_CSS: string = `${BASE_CSS}
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
