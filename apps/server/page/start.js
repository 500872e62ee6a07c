// The first thing that a new person sees: three steps, and something to begin with.
import { dialog } from "./dialogs.js";
import { h, icon } from "./dom.js";
import { fitLetters } from "./letters.js";
import { templatesFor } from "./templates.js";

// The layout of a caption in small.
function thumbnail({ caption, paper = [] }) {
  const { background, elements } = caption.compositional_deconstruction;
  const [from, to] = background.match(/#[0-9A-F]{6}/g) ?? paper;
  const view = h("span", { class: `layout ${from ? "painted" : ""}` });
  if (from) view.style.background = `linear-gradient(${from}, ${to ?? from})`;
  for (const { type, bbox, color_palette: palette, text, desc } of elements) {
    const [top, left, bottom, right] = bbox.map((side) => side / 10);
    const noun = /\b(?:sun|house|tree|cup|lantern|bottle)\b/.exec(desc)?.[0] ?? "";
    const box = type === "text" ? h("span", { class: "letters" }, h("span", {}, text))
      : h("span", { class: `thing ${noun}` });
    Object.assign(box.style, { top: `${top}%`, left: `${left}%`, width: `${right - left}%`,
      height: `${bottom - top}%` });
    if (palette) box.style[type === "text" ? "color" : "background"] = palette[0];
    if (text) fitLetters(box, text);
    view.append(box);
  }
  if (elements.length === 0) view.append(icon("new"));
  return view;
}

// take(text) gets the caption that was chosen; words() is for who would rather write a sentence.
export function startDialog(guide, { take, words, openFile }) {
  dialog({ title: "Make a picture in three steps", class: "start" }, (close) => {
    const cards = templatesFor(guide).map((template, i) =>
      h("button", { type: "button", class: "card", autofocus: i === 0, onclick: () => {
        close();
        take(template);
      } }, thumbnail(template), h("strong", {}, template.name), h("small", {}, template.about)));
    const link = (text, onclick) => h("button", { type: "button", class: "link", onclick: () => {
      close();
      onclick();
    } }, text);
    return [
      h("ol", { class: "steps" },
        h("li", {}, h("strong", {}, "Choose a start"), " below."),
        h("li", {}, h("strong", {}, "Change it: "), "move the boxes, say what is in them."),
        h("li", {}, h("strong", {}, "Render."), " Change a word or a box, and render again.")),
      h("div", { class: "cards" }, cards),
      h("p", { class: "hint" }, "Or ", link("write a sentence", words), ", or ",
        link("open a caption or a picture", openFile), " that Octet made."),
    ];
  });
}
