import { BASE_CSS, PARTS_CSS } from "@payhooks/pages";

/** The page's style sheet. */
export const STYLES: string = `${BASE_CSS}${PARTS_CSS}
.skip { position: absolute; left: -999rem; top: .5rem; z-index: 10; background: var(--surface); padding: .5rem 1rem; border-radius: 8px; }
.skip:focus { left: .5rem; }
.bar .end { min-width: 0; }
.who { font-size: .85rem; font-weight: 600; color: var(--muted); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; max-width: 16rem; }
.counts { max-width: 1760px; margin: auto; padding: 1.25rem 1.25rem 0; }
.counts ul { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .75rem; }
.tile { display: flex; flex-direction: column; gap: .1rem; height: 100%; padding: .8rem 1rem; background: var(--surface); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow); color: var(--ink); text-decoration: none; min-width: 0; }
a.tile:hover { border-color: var(--accent); }
.tile[aria-current] { border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent); }
.tile .number { font-size: 1.7rem; font-weight: 750; letter-spacing: -.02em; line-height: 1.15; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile .what { font-size: .82rem; }
.tile .does { color: var(--muted); }
.tile.none .number { color: var(--muted); font-weight: 600; }
.tile.held:not(.none) .number { color: var(--bad); }
.tile.retrying:not(.none) .number { color: var(--wait); }
main { max-width: 1760px; margin: auto; padding: 1.25rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.25rem; }
main:focus { outline: none; }
.overview { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.25rem; align-items: start; }
.feed, .side, .event-page { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.25rem; min-width: 0; align-items: start; }
@media (min-width: 1080px) { .overview { grid-template-columns: minmax(0, 7fr) minmax(0, 5fr); } }
.pair-of-cards { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.25rem; align-items: start; }
@media (min-width: 900px) { .pair-of-cards { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
.trouble { background: var(--bad-soft); color: var(--bad); border-radius: 10px; padding: .7rem 1rem; font-size: .9rem; overflow-wrap: anywhere; }
.filter { display: flex; flex-wrap: wrap; align-items: end; gap: .65rem; }
.filter label { flex: 1 1 8rem; max-width: 14rem; }
.more { flex: none; align-self: center; font-size: .85rem; }
.more[open] { flex: 1 1 100%; order: 9; }
.more summary { cursor: pointer; font-weight: 600; color: var(--muted); padding: .4rem 0; }
.more .fields { display: flex; flex-wrap: wrap; gap: .65rem; }
.filter label.wide { flex: 2 1 18rem; max-width: 34rem; }
.filter input, .filter select { background: var(--surface); }
.filter .hint { margin-left: auto; align-self: center; }
.zones { text-align: right; }
textarea { font: inherit; font-size: .92rem; font-weight: 400; color: var(--ink); background: var(--sunken); border: 1px solid var(--line); border-radius: 8px; padding: .4rem .55rem; width: 100%; min-width: 0; resize: vertical; }
#reasons:empty { display: none; }
.chips { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .4rem; }
.chips a, .ranges a { display: inline-flex; gap: .4rem; padding: .25rem .7rem; border-radius: 99px; border: 1px solid var(--line); background: var(--surface); color: var(--ink); text-decoration: none; font-size: .82rem; font-weight: 600; }
.chips a:hover, .ranges a:hover { border-color: var(--accent); }
.chips a[aria-current], .ranges a[aria-current] { background: var(--accent-soft); border-color: var(--accent); }
.ranges { display: flex; gap: .3rem; }
ul.list, ol.list, ol.log, ol.timeline { list-style: none; margin: 0; padding: 0; }
.empty { padding: 2rem 1.25rem; text-align: center; color: var(--muted); }
.events .row { display: grid; grid-template-columns: max-content minmax(0, 1fr); align-items: center; }
.events .row:hover { background: var(--sunken); }
.pick { margin: 0 0 0 1rem; width: 1.1rem; height: 1.1rem; min-height: 0; accent-color: var(--accent); }
span.pick { width: 0; margin: 0; }
.event { display: grid; grid-template-columns: minmax(0, 1fr); gap: .25rem; padding: .7rem 1rem; color: inherit; text-decoration: none; min-width: 0; }
.event:focus-visible { outline-offset: -2px; border-radius: 8px; }
.event:hover .name { text-decoration: underline; }
.selection { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem 1rem; padding: .55rem 1rem; border-bottom: 1px solid var(--line); background: var(--sunken); }
.selection .end { margin-left: auto; }
.pages { display: flex; gap: .5rem; justify-content: flex-end; padding: .75rem 1rem; border-top: 1px solid var(--line); }
.pages:empty { display: none; }
.chart { width: 100%; height: 10rem; display: block; }
.chart .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
.chart .good, .legend .good { fill: var(--good); background: var(--good); }
.chart .wait, .legend .wait { fill: var(--wait); background: var(--wait); }
.chart .bad, .legend .bad { fill: var(--bad); background: var(--bad); }
.chart .off, .legend .off { fill: var(--off); background: var(--off); }
.chart .deliveries { stroke: var(--ink); stroke-width: 2; vector-effect: non-scaling-stroke; }
.axis { display: flex; justify-content: space-between; font-size: .75rem; color: var(--muted); margin-top: -.5rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: 0; padding: 0; font-size: .82rem; }
.legend li { display: inline-flex; align-items: center; gap: .35rem; }
.legend .key { width: .75rem; height: .75rem; border-radius: 3px; }
.legend .line-key { height: 2px; background: var(--ink); border-radius: 0; }
.numbers summary { cursor: pointer; font-size: .82rem; font-weight: 600; color: var(--muted); }
.scroll { overflow: auto; max-height: 16rem; margin-top: .5rem; }
table { border-collapse: collapse; width: 100%; font-size: .8rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child { text-align: left; font-weight: 600; }
thead th { color: var(--muted); font-weight: 600; }
.log li { padding: .6rem 1rem; border-top: 1px solid var(--line); display: grid; gap: .25rem; font-size: .85rem; overflow-wrap: anywhere; }
.log { max-height: 28rem; overflow: auto; }
.back { font-size: .85rem; white-space: nowrap; }
.event-page .card > header h2 { overflow-wrap: anywhere; }
.reason { background: var(--bad-soft); border-radius: 10px; padding: .7rem .9rem; font-size: .9rem; overflow-wrap: anywhere; }
.reason .detail { display: block; color: var(--bad); margin-top: .2rem; }
.event-page .facts { font-size: .88rem; gap: .3rem 1.2rem; }
.timeline li { position: relative; display: grid; grid-template-columns: minmax(0, 1fr); gap: .05rem; padding: 0 0 1rem 1.4rem; font-size: .88rem; overflow-wrap: anywhere; }
.timeline li::before { content: ""; position: absolute; left: 0; top: .4rem; width: .7rem; height: .7rem; border-radius: 50%; background: var(--off); }
.timeline li::after { content: ""; position: absolute; left: .3rem; top: 1.2rem; bottom: -.3rem; width: 2px; background: var(--line); }
.timeline li:last-child { padding-bottom: 0; }
.timeline li:last-child::after { display: none; }
.timeline .good::before { background: var(--good); }
.timeline .bad::before { background: var(--bad); }
.timeline .person::before { background: var(--accent); border-radius: 3px; }
.timeline .coming::before { background: none; border: 1.5px dashed var(--wait); }
.timeline time, .timeline .when { font-size: .8rem; color: var(--muted); font-variant-numeric: tabular-nums; }
.said { display: block; color: var(--muted); }
.body { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.55; font-size: .8rem; max-height: 32rem; overflow: auto; background: var(--sunken); border-radius: 10px; padding: .8rem; }
.order .this { background: var(--sunken); }
.order .sub { white-space: normal; overflow-wrap: anywhere; }
.step { padding: .7rem 1rem; display: grid; gap: .25rem; overflow-wrap: anywhere; }
.shapeless { font-family: var(--mono); font-size: .72em; background: var(--wait-soft); color: var(--wait); border-radius: 4px; padding: 0 .2em; margin: 0 .1em; }
#health:empty { display: none; }
#health { display: grid; gap: .6rem; }
#planned { display: grid; gap: .7rem; max-height: min(45vh, 26rem); overflow: auto; overscroll-behavior: contain; }
#planned:empty { display: none; }
.planned { margin: 0; padding: .55rem .8rem .7rem; border: 1px solid var(--line); border-radius: 10px; min-width: 0; display: grid; gap: .4rem; }
.planned legend { padding: 0 .35rem; font-weight: 600; font-size: .9rem; }
.planned ul { list-style: none; margin: 0; padding: 0; display: grid; gap: .6rem; }
.planned li { display: grid; grid-template-columns: minmax(0, 1fr); gap: .15rem; padding-top: .5rem; border-top: 1px solid var(--line); overflow-wrap: anywhere; font-size: .88rem; }
.planned .sub { white-space: normal; overflow-wrap: anywhere; }
.planned strong.problem { font-weight: 650; }
dialog.running #planned, dialog.running label { display: none; }
.amount { font-variant-numeric: tabular-nums; }
dialog { border: 1px solid var(--line); border-radius: 16px; background: var(--surface); color: var(--ink); padding: 1.25rem; width: min(94vw, 40rem); box-shadow: 0 12px 50px rgb(0 0 0 / .3); }
dialog::backdrop { background: rgb(10 20 15 / .45); }
dialog h2 { font-size: 1.05rem; }
dialog p { font-size: .9rem; overflow-wrap: anywhere; }
dialog form { gap: .9rem; }
dialog .actions { justify-content: flex-end; }
button[data-decide="discard"] { color: var(--bad); border-color: var(--bad); }
button.danger { background: var(--bad); border-color: var(--bad); color: var(--surface); }
progress { width: 100%; accent-color: var(--accent); }
.failures { margin: 0; padding-left: 1.1rem; font-size: .82rem; color: var(--bad); max-height: 9rem; overflow: auto; }
.failures:empty { display: none; }
.plain { max-width: 40rem; margin: 10vh auto 0; }
.plain h1 { font-size: 1.05rem; }
@media (max-width: 860px) {
  .bar { padding: .55rem .75rem; }
  .who { max-width: 5.5rem; }
  .counts { padding: .75rem .75rem 0; }
  .counts ul { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; }
  .counts li:first-child { grid-column: 1 / -1; }
  .tile { padding: .6rem .8rem; }
  .tile .number { font-size: 1.35rem; }
  main { padding: .75rem; gap: .9rem; }
  .overview, .feed, .side, .event-page, .pair-of-cards { gap: .9rem; }
  .filter label, .filter label.wide { flex: 1 1 40%; max-width: none; }
  .filter label.wide { flex-basis: 100%; }
  .filter button { flex: 1 1 40%; }
  .more { flex: 1 1 40%; }
  .filter .hint { margin: 0; }
  .card > header { flex-wrap: wrap; }
  .card > header .hint, .sub .day { display: none; }
  .log .sub .day, .planned .sub .day { display: inline; }
  input, select, textarea { font-size: 16px; }
  .selection .end { margin-left: 0; }
  .event-page .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .event-page .facts dd { margin-bottom: .4rem; }
  .events .sub { white-space: normal; overflow-wrap: anywhere; }
}
`;
