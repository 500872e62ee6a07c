// Two pictures over each other, with a divider between them.
import { dialog } from "./dialogs.js";
import { h } from "./dom.js";
import { reportRows } from "./report.js";

// What the two do not have in common: [name, of A, of B].
function differences([a, b]) {
  const ofB = new Map(reportRows(b));
  const rows = reportRows(a).map(([name, text]) => [name, text, ofB.get(name) ?? ""]);
  const names = new Set(rows.map(([name]) => name));
  for (const [name, text] of ofB) if (!names.has(name)) rows.push([name, "", text]);
  if (a.request?.json_prompt !== b.request?.json_prompt) {
    rows.push(["Caption", a.subject, b.subject]);
  }
  return rows.filter(([, one, other]) => one !== other);
}

export function compareDialog(two) {
  const [a, b] = two;
  const above = h("img", { src: a.url, alt: `A: ${a.subject}`, class: "above" });
  const line = h("span", { class: "divider" });
  const range = h("input", { type: "range", min: 0, max: 100, value: 50, step: 1,
    "aria-label": "Divider between picture A and picture B" });
  const field = h("div", { class: "compare-field" },
    h("img", { src: b.url, alt: `B: ${b.subject}` }), above, line,
    h("span", { class: "corner left" }, "A"), h("span", { class: "corner right" }, "B"));
  field.style.setProperty("--ratio", String(a.width / a.height));
  const place = (percent) => {
    above.style.clipPath = `inset(0 ${100 - percent}% 0 0)`;
    line.style.left = `${percent}%`;
  };
  range.addEventListener("input", () => place(range.valueAsNumber));
  const follow = (event) => {
    if (event.type === "pointermove" && event.buttons === 0) return;
    const area = field.getBoundingClientRect();
    const percent = ((event.clientX - area.left) / area.width) * 100;
    range.valueAsNumber = Math.min(100, Math.max(0, percent));
    place(range.valueAsNumber);
  };
  field.addEventListener("pointerdown", (event) => {
    field.setPointerCapture(event.pointerId);
    follow(event);
  });
  field.addEventListener("pointermove", follow);
  place(50);
  const rows = differences(two);
  const table = h("table", {},
    h("thead", {}, h("tr", {}, h("td"), h("th", { scope: "col" }, "A"),
      h("th", { scope: "col" }, "B"))),
    h("tbody", {}, rows.map(([name, one, other]) => h("tr", {},
      h("th", { scope: "row" }, name), h("td", {}, one), h("td", {}, other)))));
  return dialog({ title: "Compare", class: "compare-dialog" }, () => [
    field, range,
    rows.length > 0 ? h("div", { class: "scroll" }, table)
      : h("p", { class: "hint" }, "Both were made in the same way."),
  ]);
}
