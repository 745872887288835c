#include "apps/weir/simulate/html.h"

namespace weir::simulate {

// Blue against vermilion and amber: told apart with any kind of colour vision, and by lightness in
// print. Every text is at 4.5:1 or better on its ground.
std::string_view HtmlStyle() noexcept {
  return R"css(
:root {
  color-scheme: light dark;
  --ground: #faf9f6; --card: #ffffff; --ink: #1b2127; --soft: #59636e; --rule: #e3e1db;
  --pass: #2b6cb0; --deny: #ccd3da; --over: #c2410c; --late: #b7791f; --tint: #eaf1f9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #121518; --card: #1a1e23; --ink: #e8eaed; --soft: #9aa4af; --rule: #2c333a;
    --pass: #63a4e8; --deny: #3d4650; --over: #fb8351; --late: #e3b341; --tint: #1b2a3a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1160px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -0.02em; margin: 0 0 4px; }
h2 { font-size: 20px; letter-spacing: -0.01em; margin: 48px 0 2px; }
h2 small { font-size: 15px; font-weight: 400; color: var(--soft); margin-left: 8px; }
p { margin: 0 0 12px; max-width: 96ch; }
.soft { color: var(--soft); }
.card {
  background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 8px 20px;
  margin: 16px 0;
}
.verdict { background: var(--tint); border-color: transparent; padding: 20px 24px; }
.verdict p { font-size: 18px; margin: 0; max-width: none; }
.verdict strong { color: var(--pass); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 15px; }
th, td { text-align: left; padding: 9px 16px 9px 0; border-bottom: 1px solid var(--rule); }
th:last-child, td:last-child { padding-right: 0; }
tr:last-child td, tr:last-child th { border-bottom: 0; }
thead th { font-weight: 500; font-size: 13px; color: var(--soft); vertical-align: bottom; }
tbody th { font-weight: 600; white-space: nowrap; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.over { color: var(--over); font-weight: 600; }
.tag {
  font-size: 12px; font-weight: 600; color: var(--pass); background: var(--tint);
  border-radius: 99px; padding: 2px 9px; margin-left: 6px;
}
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 14px; color: var(--soft); }
.legend i {
  display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 7px;
  vertical-align: -1px;
}
.row {
  display: grid; grid-template-columns: 132px 1fr 1fr 176px; gap: 8px 24px; align-items: center;
  padding: 10px 0; border-bottom: 1px solid var(--rule);
}
.row:last-child { border-bottom: 0; }
.head { font-size: 13px; font-weight: 500; color: var(--soft); padding: 6px 0; }
.who b { display: block; line-height: 1.3; white-space: nowrap; }
.who span { font-size: 13px; color: var(--soft); }
svg { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y; }
svg text { font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--rule); }
.line { stroke: var(--ink); stroke-dasharray: 4 3; opacity: 0.7; }
.cursor { stroke: var(--ink); opacity: 0; }
.f-pass { fill: var(--pass); background: var(--pass); }
.f-deny { fill: var(--deny); background: var(--deny); }
.f-over { fill: var(--over); background: var(--over); }
.f-late { fill: var(--late); background: var(--late); }
.bar { font-size: 13px; color: var(--soft); line-height: 1.35; margin: 3px 0; }
.bar b { color: var(--ink); font-variant-numeric: tabular-nums; }
.bar div { height: 6px; border-radius: 3px; background: var(--rule); margin-top: 3px; }
.bar i { display: block; height: 6px; border-radius: 3px; }
#tip {
  position: fixed; pointer-events: none; visibility: hidden; background: var(--ink);
  color: var(--ground); font-size: 13px; line-height: 1.45; padding: 7px 11px; border-radius: 8px;
  white-space: pre; font-variant-numeric: tabular-nums; z-index: 1;
}
footer { margin-top: 48px; font-size: 14px; color: var(--soft); }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.92em; }
@media (max-width: 860px) {
  main { padding: 24px 16px 48px; }
  .row { grid-template-columns: 1fr; }
}
@media print { .card { break-inside: avoid; } }
)css";
}

// A crosshair through all charts of a section. Without scripts the page lacks that and no more.
std::string_view HtmlScript() noexcept {
  return R"js(
const tip = document.getElementById('tip');
const list = (element, name) => element.dataset[name].split(' ').map(Number);
for (const section of document.querySelectorAll('section.stage')) {
  const offered = list(section, 'offered');
  const spanNs = Number(section.dataset.span), limit = Number(section.dataset.limit);
  const unit = section.dataset.unit, unitNs = Number(section.dataset.unitNs);
  const hide = () => {
    tip.style.visibility = 'hidden';
    section.querySelectorAll('.cursor').forEach((line) => { line.style.opacity = 0; });
  };
  for (const svg of section.querySelectorAll('svg')) {
    const row = svg.closest('.row');
    const admitted = list(row, 'admitted'), inside = list(row, 'window');
    svg.addEventListener('pointerleave', hide);
    svg.addEventListener('pointermove', (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * 400;
      const part = Math.floor((x - 34) / 362 * offered.length);
      if (!(part >= 0) || part >= offered.length) { hide(); return; }
      const at = 34 + (part + 0.5) * 362 / offered.length;
      section.querySelectorAll('.cursor').forEach((line) => {
        line.setAttribute('x1', at); line.setAttribute('x2', at); line.style.opacity = 0.6;
      });
      const time = (part * spanNs / offered.length / unitNs).toFixed(2);
      tip.textContent = row.dataset.name + ' at ' + time + ' ' + unit +
        '\nadmitted ' + admitted[part] + ' of ' + offered[part] +
        '\nwindow ' + inside[part] + ' = ' + (inside[part] / limit).toFixed(2) + 'x the limit';
      tip.style.visibility = 'visible';
      const left = Math.min(event.clientX + 16, window.innerWidth - tip.offsetWidth - 8);
      tip.style.left = Math.max(left, 8) + 'px';
      tip.style.top = Math.max(event.clientY - tip.offsetHeight - 14, 8) + 'px';
    });
  }
}
)js";
}

}  // namespace weir::simulate
