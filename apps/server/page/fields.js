// Labelled fields, and the sentences that stand below them.
import { h, icon, show } from "./dom.js";

let count = 0;

// A field of the form: {node, show(value, findings, hint)}. oninput(value) hears what is typed.
export function textField({ label, rows = 1, placeholder = "", hint = "", oninput, list = null }) {
  const id = `field-${++count}`;
  const control = rows > 1
    ? h("textarea", { id, rows, placeholder })
    : h("input", { id, type: "text", placeholder, list, autocomplete: "off" });
  control.addEventListener("input", () => oninput(control.value));
  const notes = h("div", { id: `${id}-notes`, class: "notes" });
  control.setAttribute("aria-describedby", notes.id);
  const node = h("div", { class: "field" }, h("label", { for: id }, label), control, notes);
  return {
    node,
    control,
    show(value, findings = [], now = hint) {
      show(control, value);
      showNotes(notes, control, findings, now);
    },
  };
}

// The findings of a field, or else its hint.
export function showNotes(notes, control, findings, hint = "") {
  const lines = findings.map(({ rule, severity }) =>
    h("p", { class: `finding ${severity}` }, rule));
  if (lines.length === 0 && hint) {
    lines.push(h("p", { class: hint.rule ? "finding warning" : "hint" }, hint.rule ?? hint));
  }
  const said = (place) =>
    [...place].map((line) => `${line.className}:${line.textContent}`).join("\n");
  if (said(notes.children) !== said(lines)) notes.replaceChildren(...lines);
  const isWrong = findings.some(({ severity }) => severity === "error");
  if (isWrong) control?.setAttribute("aria-invalid", "true");
  else control?.removeAttribute("aria-invalid");
}

// Buttons of which one is chosen: {node, show(value)}.
export function choice({ label, name, options, onchange }) {
  const inputs = new Map();
  const group = `${name}-${++count}`;
  const node = h("div", { class: "segments", role: "radiogroup", "aria-label": label });
  for (const { value, text, small, image, says } of options) {
    const input = h("input", { type: "radio", name: group, "aria-label": says,
      onchange: () => onchange(value) });
    input.value = value;
    inputs.set(value, input);
    node.append(h("label", {}, input, h("span", {}, image ? icon(image) : null,
      h("span", {}, text), small ? h("small", {}, small) : null)));
  }
  return {
    node,
    show(value) {
      for (const [each, input] of inputs) input.checked = each === value;
    },
  };
}
