// The style sheet of the report page, and its only script.
//
// Thread-safe: constants.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_PAGE_STYLE_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_PAGE_STYLE_H_

namespace systole::emulator {

// The page has kBaseStyle (core/page/base_style.h), then these rules. The class `s-SERIES` gives a
// series its colour.
inline constexpr char kPageStyle[] = R"css(
.remark { color: var(--soft); }
.notice ul { margin: 0; padding-left: 16px; overflow-wrap: anywhere; }
header .verdict { display: flex; gap: 10px; margin: 12px 0; padding: 12px 16px; max-width: none; border-radius: 10px;
  border-left: 6px solid currentcolor; font-size: 20px; line-height: 1.3; font-weight: 620;
  overflow-wrap: anywhere; }
.verdict span::first-letter { text-transform: uppercase; }
header .neutral { background: var(--badge); color: var(--badge-ink); }
header .good { background: var(--good); color: var(--good-ink); }
header .fair { background: var(--fair); color: var(--fair-ink); }
header .bad { background: var(--bad); color: var(--bad-ink); }
.grid { display: grid; gap: 16px; grid-template-columns: repeat(2, minmax(0, 1fr)); }
.cards { display: grid; gap: 16px; margin-bottom: 16px;
  grid-template-columns: repeat(auto-fit, minmax(168px, 1fr)); }
.card, figure, .sheet { margin: 0; padding: 18px 20px; min-width: 0; background: var(--card);
  border: 1px solid var(--edge); border-radius: 10px; }
.wide { grid-column: 1 / -1; }
.card dt { color: var(--soft); font-size: 13px; }
.card dd { margin: 2px 0 0; font-size: 25px; line-height: 1.25; font-weight: 620;
  letter-spacing: -.01em; overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr));
  gap: 14px 20px; margin: 12px 0 0; }
data { font-variant-numeric: tabular-nums; }
.remark { margin: 2px 0 0; font-size: 13px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 6px; padding: 0;
  list-style: none; font-size: 13px; }
.legend svg { width: 14px; height: 14px; margin-right: 6px; vertical-align: -2px;
  overflow: visible; }
.plot svg { display: block; width: 100%; height: auto; overflow: visible; }
.plot .at-narrow { display: none; }
.scroll { margin-top: 10px; }
table { border-collapse: collapse; min-width: min(100%, 480px); font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 4px 0; }
th, td { padding: 5px 0 5px 28px; text-align: right; white-space: nowrap;
  border-top: 1px solid var(--grid); font-weight: 400; }
thead th { color: var(--soft); border-top: 0; }
th:first-child { text-align: left; padding-left: 0; }
.sheet table { width: 100%; }
.sheet .scroll { margin-top: 0; }
summary { margin-top: 8px; color: var(--soft); font-size: 13px; cursor: pointer; }
footer { max-width: 90ch; }
footer li { margin: 3px 0; }

svg text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.y-tick, .note { text-anchor: end; }
.x-tick, .x-label { text-anchor: middle; }
.grid-line, .tick, .axis, .rule { fill: none; stroke: var(--grid); }
.minor { opacity: .55; }
.axis, .tick { stroke: var(--soft); opacity: .6; }
.rule { stroke: var(--soft); opacity: .45; }
.line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.band { fill: var(--c); opacity: .2; }
.bar { fill: var(--c); }
.dot { fill: var(--c); stroke: var(--card); stroke-width: 1.2; }
.s-training, .s-compute, .s-rate, .s-matrix, .s-p50, .s-arrived, .s-cpus { --c: var(--blue); }
.s-validation, .s-stall, .s-max, .s-wanted { --c: var(--orange); }
.s-barrier, .s-vector, .s-p99 { --c: var(--violet); }
.s-memory, .s-p90 { --c: var(--green); }
.s-roof { --c: var(--soft); }
.tip-at { fill: transparent; }
.tip-at:hover { fill: var(--soft); fill-opacity: .14; }
#tip { position: fixed; z-index: 1; padding: 6px 10px; border-radius: 6px; max-width: 340px;
  background: var(--ink); color: var(--card); font-size: 13px; line-height: 1.4;
  white-space: pre-line; pointer-events: none; font-variant-numeric: tabular-nums; }
@media (max-width: 820px) {
  .grid { grid-template-columns: minmax(0, 1fr); }
  .wide .plot text { font-size: 14.5px; }
}
@media (max-width: 600px) {
  .card, figure, .sheet { padding: 12px; }
  .cards { gap: 10px; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); }
  .card dd { font-size: 21px; }
  .facts { gap: 10px 16px; grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); }
  .plot .at-wide { display: none; }
  .plot .at-narrow { display: block; }
  .wide .plot text { font-size: 12px; }
}
@media print { .card, figure, .sheet { break-inside: avoid; } }
)css";

// Shows the tooltip of the mark under the pointer.
inline constexpr char kPageScript[] = R"js(
(() => {
  const tip = document.getElementById('tip');
  document.addEventListener('pointermove', event => {
    const at = event.target.closest ? event.target.closest('[data-tip]') : null;
    tip.hidden = !at;
    if (!at) return;
    tip.textContent = at.dataset.tip;
    const x = event.clientX + 14, y = event.clientY + 14;
    tip.style.left = Math.min(x, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = Math.min(y, innerHeight - tip.offsetHeight - 8) + 'px';
  });
})();
)js";

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_PAGE_STYLE_H_
