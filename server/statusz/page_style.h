// The style sheet and the script of the server's page, apart from the code that fills the page. In
// the page, kBaseStyle (core/page/base_style.h) comes before this style sheet.
//
// Thread-safe: constants.
#ifndef SYSTOLE_SERVER_STATUSZ_PAGE_STYLE_H_
#define SYSTOLE_SERVER_STATUSZ_PAGE_STYLE_H_

namespace systole {

inline constexpr char kStatusStyle[] = R"css(
.top, .end { max-width: 1216px; margin: 0 auto; padding: 32px 20px 0; }
.end { padding: 0 20px 32px; }
.top p { margin: 0 0 8px; }
main { padding-top: 8px; }
section { margin: 0 0 16px; padding: 18px 20px; min-width: 0; background: var(--card);
  border: 1px solid var(--edge); border-radius: 10px; }
.draining { background: var(--fair); color: var(--fair-ink); }
button { font: inherit; color: var(--badge-ink); background: var(--badge); cursor: pointer;
  border: 1px solid var(--edge); border-radius: 6px; padding: 2px 12px; }
a { color: var(--badge-ink); }
:focus-visible { outline: 3px solid var(--blue); outline-offset: 2px; }
.facts { display: grid; gap: 14px 20px; margin: 12px 0 0;
  grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); }
.facts dd { font-size: 21px; font-weight: 620; line-height: 1.3; }
.plots { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); }
figure { margin: 12px 0 0; min-width: 0; }
figcaption { font-weight: 600; }
.plot svg { display: block; width: 100%; height: 120px; background: var(--page);
  border: 1px solid var(--edge); }
.plot path { fill: none; stroke: var(--blue); stroke-width: 2; stroke-linejoin: round;
  vector-effect: non-scaling-stroke; }
.plot p, .rest, .words { margin: 2px 0 0; color: var(--soft); font-size: 13px;
  overflow-wrap: anywhere; }
.ends { display: flex; justify-content: space-between; }
.scroll { margin-top: 6px; }
table { width: 100%; border-collapse: collapse; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 4px 0; }
th, td { padding: 5px 0 5px 28px; text-align: right; white-space: nowrap;
  border-top: 1px solid var(--grid); font-weight: 400; }
thead th { color: var(--soft); border-top: 0; }
th:first-child { text-align: left; padding-left: 0; }
tbody th { min-width: 90px; white-space: normal; overflow-wrap: anywhere; font-weight: 600; }
.narrow table { width: auto; min-width: min(100%, 420px); }
summary { cursor: pointer; }
summary h2 { display: inline; }
.pictures { display: flex; flex-wrap: wrap; gap: 8px; margin: 8px 0 0; padding: 0;
  list-style: none; }
.pictures img { display: block; background: var(--hatch); image-rendering: pixelated; }
@media (max-width: 600px) {
  .top { padding: 16px 10px 0; }
  .end { padding: 0 10px 16px; }
  section { padding: 12px; }
  .facts dd { font-size: 18px; }
  th, td { padding-left: 18px; }
}
@media print { section { break-inside: avoid; } button { display: none; } }
)css";

// The script receives events, and changes the parts of the page that differ from the event. It
// writes the values of an event as text or as attributes, never as markup.
inline constexpr char kStatusScript[] = R"js(
(() => {
  const at = id => document.getElementById(id);
  const text = (element, value) => {
    if (element.textContent !== value) element.textContent = value;
  };
  const fill = (element, [words, series, value]) => {
    if (series === undefined) return text(element, words);
    let data = element.firstElementChild;
    if (!data || data.dataset.series !== series) {
      data = document.createElement('data');
      data.dataset.series = series;
      element.replaceChildren(data);
    }
    data.value = value;
    text(data, words);
  };
  const fillTable = (table, rows) => {
    const body = table.tBodies[0];
    while (body.rows.length > rows.length) body.deleteRow(-1);
    rows.forEach((cells, i) => {
      const row = body.rows[i] || body.insertRow();
      cells.forEach((cell, j) => {
        if (!row.cells[j]) {
          const made = document.createElement(j ? 'td' : 'th');
          if (!j) made.scope = 'row';
          row.append(made);
        }
        fill(row.cells[j], cell);
      });
    });
    table.closest('.scroll').hidden = !rows.length;
  };
  const picture = ([words, width, height, jpeg]) => {
    const image = document.createElement('img');
    image.alt = words;
    image.width = width;
    image.height = height;
    image.src = 'data:image/jpeg;base64,' + jpeg;
    const item = document.createElement('li');
    item.append(image);
    return item;
  };
  const show = page => {
    text(at('state'), page.state);
    at('state').classList.toggle('draining', page.state === 'draining');
    for (const [id, cell] of Object.entries(page.facts)) fill(at(id), cell);
    for (const [id, rows] of Object.entries(page.tables)) fillTable(at(id + '-table'), rows);
    for (const [id, words] of Object.entries(page.rest)) text(at(id + '-rest'), words);
    for (const [id, plot] of Object.entries(page.plots)) {
      at(id + '-path').setAttribute('d', plot.path);
      at(id + '-svg').setAttribute('aria-label', plot.words);
      text(at(id + '-most'), plot.most);
      text(at(id + '-words'), plot.words);
    }
    text(at('pictures-words'), page.about_pictures);
    if (page.pictures) at('pictures-list').replaceChildren(...page.pictures.map(picture));
    document.documentElement.dataset.events = ++events;
  };
  const live = words => text(at('live'), words);
  const button = at('pause');
  let events = 0;
  let source = null;
  const stop = words => {
    if (source) source.close();
    source = null;
    button.textContent = 'Go on';
    live(words);
  };
  const start = () => {
    button.textContent = 'Pause';
    source = new EventSource('statusz/events');
    source.onopen = () => live('Live: the numbers change by themselves.');
    source.onmessage = event => show(JSON.parse(event.data));
    source.addEventListener('last', event => {
      show(JSON.parse(event.data));
      stop('The server drains. These are its last numbers.');
    });
    source.onerror = () => source.readyState === EventSource.CLOSED
        ? stop('Not live: the server has too many viewers, or you may no longer see this page.')
        : live('The connection is lost. Trying again.');
  };
  button.hidden = false;
  button.onclick = () => source ? stop('Paused.') : start();
  start();
})();
)js";

}  // namespace systole

#endif  // SYSTOLE_SERVER_STATUSZ_PAGE_STYLE_H_
