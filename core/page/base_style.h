// The part of a style sheet that all pages of this project share: colours for light and dark mode,
// and the rules for elements that every page has. A page puts this part before its own rules.
//
// Thread-safe: a constant.
#ifndef SYSTOLE_CORE_PAGE_BASE_STYLE_H_
#define SYSTOLE_CORE_PAGE_BASE_STYLE_H_

namespace systole {

inline constexpr char kBaseStyle[] = R"css(
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --edge: #e1e5ea; --ink: #16202c; --soft: #5b6878;
  --grid: #e6e9ee; --blue: #2268c9; --orange: #d9600f; --violet: #7a4fc4; --green: #128a63;
  --badge: #e6eefb; --badge-ink: #174a92; --good: #e2f5ea; --good-ink: #0b5d3b;
  --fair: #fdf0d5; --fair-ink: #6e4300; --bad: #fde6e6; --bad-ink: #97151b;
  --hatch: #edf0f4; --bad-hatch: #f8d3d3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #10151b; --card: #181f27; --edge: #2a3440; --ink: #e7ecf2; --soft: #98a6b6;
    --grid: #26303b; --blue: #5b9cf5; --orange: #f28b45; --violet: #ab86ee; --green: #3fc093;
    --badge: #1d3252; --badge-ink: #a9cbff; --good: #12372a; --good-ink: #8be6bd;
    --fair: #3d2d0d; --fair-ink: #ffd48a; --bad: #47191d; --bad-ink: #ffb0b0;
    --hatch: #1f2832; --bad-hatch: #571f24;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1216px; margin: 0 auto; padding: 32px 20px 48px; }
header p, footer { color: var(--soft); }
h1 { margin: 6px 0 4px; font-size: 30px; line-height: 1.2; letter-spacing: -.01em;
  overflow-wrap: anywhere; }
header p { margin: 0 0 24px; max-width: 75ch; }
h2 { margin: 0; font-size: 17px; }
.badge { display: inline-block; padding: 2px 10px; border-radius: 99px; font-size: 13px;
  font-weight: 600; background: var(--badge); color: var(--badge-ink); }
.notice { margin: 0 0 16px; padding: 10px 20px; background: var(--card); border-radius: 10px;
  border: 1px solid var(--edge); border-left: 4px solid var(--orange); }
.facts dt { color: var(--soft); font-size: 13px; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
footer { margin-top: 24px; font-size: 13px; }
@media (max-width: 600px) { main { padding: 16px 10px 32px; } }
@media print { body { background: none; } }
)css";

}  // namespace systole

#endif  // SYSTOLE_CORE_PAGE_BASE_STYLE_H_
