// The style sheet of a contact sheet. On the page it follows kBaseStyle.
//
// Thread-safe: constants.
#ifndef SYSTOLE_CLIENT_LOOK_SHEET_STYLE_H_
#define SYSTOLE_CLIENT_LOOK_SHEET_STYLE_H_

namespace systole {

inline constexpr char kSheetStyle[] = R"css(
.remarks { color: var(--soft); }
h2.step { margin: 28px 0 10px; }
.notice ul, .remarks, footer ul { margin: 0; padding-left: 16px; overflow-wrap: anywhere; }
.sheet { margin: 0 0 16px; padding: 18px 20px; min-width: 0; background: var(--card);
  border: 1px solid var(--edge); border-radius: 10px; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(130px, 1fr));
  gap: 14px 20px; }
.facts .long { grid-column: span 2; }
.facts dd { font-weight: 600; }
.scroll { margin-top: 6px; }
table { width: 100%; border-collapse: collapse; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 6px 0 6px 28px; text-align: right; white-space: nowrap; vertical-align: top;
  border-top: 1px solid var(--grid); font-weight: 400; }
thead th { color: var(--soft); border-top: 0; }
th:first-child { text-align: left; padding-left: 0; }
tbody th { min-width: 150px; max-width: 380px; white-space: normal; overflow-wrap: anywhere;
  font-weight: 600; }
small { display: block; color: var(--soft); font-size: 12.5px; font-weight: 400; }
.alarm { color: var(--bad-ink); font-weight: 600; }
.remarks { margin-top: 10px; font-size: 13px; }
summary { cursor: pointer; font-weight: 600; }
pre { margin: 12px 0 0; overflow-x: auto; font-size: 12.5px; line-height: 1.45; }
.examples { display: grid; gap: 12px; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(158px, 1fr)); }
.examples.wide { grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); }
.example { display: flex; flex-direction: column; min-width: 0; overflow: hidden;
  background: var(--card); border: 1px solid var(--edge); border-radius: 10px; }
.pictures.several { display: grid; grid-template-columns: 1fr 1fr; gap: 1px; }
figure { margin: 0; min-width: 0; }
figcaption { padding: 2px 6px; color: var(--soft); font-size: 12px; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
img { display: block; width: 100%; height: auto; max-height: 360px; object-fit: contain;
  background: var(--hatch); }
img.small { image-rendering: pixelated; }
.values { margin: 8px 12px 0; padding: 0; list-style: none; font-size: 14px; line-height: 1.4; }
.values li { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.values span { color: var(--soft); }
.values b { font-weight: 620; }
.where { display: flex; flex-wrap: wrap; gap: 0 10px; margin: 4px 12px 9px; color: var(--soft);
  font-size: 12px; font-variant-numeric: tabular-nums; }
.missing { align-self: stretch; border-style: dashed; }
.missing div { flex: 1; display: flex; flex-direction: column; align-items: center;
  justify-content: center; min-height: 110px; padding: 12px; text-align: center;
  font-size: 13px; color: var(--soft);
  background: repeating-linear-gradient(45deg, var(--card) 0 9px, var(--hatch) 9px 18px); }
.missing b { font-size: 15px; color: var(--ink); }
.masked { border-color: var(--bad-ink); }
.masked div { color: var(--bad-ink);
  background: repeating-linear-gradient(45deg, var(--bad) 0 9px, var(--bad-hatch) 9px 18px); }
.masked b { color: inherit; }
@media (max-width: 600px) {
  .sheet { padding: 12px; }
  .facts { gap: 10px 16px; grid-template-columns: repeat(auto-fill, minmax(120px, 1fr)); }
  .examples { gap: 8px; grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); }
  .examples.wide { grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); }
  th, td { padding-left: 20px; }
}
@media print { .sheet, .example { break-inside: avoid; } }
)css";

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_SHEET_STYLE_H_
