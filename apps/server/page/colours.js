// A palette as a row of swatches.
import { isColour } from "./caption.js";
import { h, iconButton } from "./dom.js";
import { showNotes } from "./fields.js";

// {node, show(palette, findings)}; onchange(list) hears a new palette, undefined for none.
export function paletteField({ label, most, onchange }) {
  const swatches = h("div", { class: "swatches", role: "group", "aria-label": label });
  const notes = h("div", { class: "notes" });
  const node = h("div", { class: "field" }, h("span", { class: "label" }, label), swatches, notes);
  let shown = null;

  const change = (edit, tag) => {
    const list = [...shown];
    edit(list);
    onchange(list.length > 0 ? list : undefined, tag);
  };

  const nameOf = (colour, i) => `Colour ${i + 1}: ${colour}`;

  function swatch(colour, i) {
    const name = typeof colour === "string" ? colour : JSON.stringify(colour);
    const input = isColour(colour)
      ? h("input", { type: "color", value: colour.toLowerCase(), title: name })
      : h("input", { type: "text", value: name });
    input.setAttribute("aria-label", nameOf(name, i));
    input.addEventListener("input", () =>
      change((list) => (list[i] = input.value.toUpperCase()), `colour ${i}`));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Delete" || input.type === "text") return;
      event.preventDefault();
      change((list) => list.splice(i, 1), "");
    });
    const remove = iconButton("close", `Remove colour ${i + 1}`,
      () => change((list) => list.splice(i, 1), ""), { class: "remove" });
    return h("span", { class: "swatch" }, input, remove);
  }

  function show(palette, findings) {
    const isSame = shown && shown.length === palette.length &&
      shown.every((each, i) => each === palette[i]);
    const had = shown;
    shown = palette;
    showNotes(notes, null, findings);
    if (isSame) return;
    // One colour changed while its picker is open: the picker must stay.
    if (had && had.length === palette.length && swatches.contains(document.activeElement)) {
      palette.forEach((colour, i) => {
        const input = swatches.children[i].querySelector("input");
        if (input.type !== "color" || !isColour(colour)) return;
        input.value = colour.toLowerCase();
        input.title = colour;
        input.setAttribute("aria-label", nameOf(colour, i));
      });
      return;
    }
    const add = iconButton("new", "Add a colour", () => {
      change((list) => list.push("#2A5BD0"), "");
      swatches.querySelector(".swatch:last-of-type input")?.click();
    }, { class: "icon-button small add" });
    const focused = [...swatches.children].findIndex((each) =>
      each.contains(document.activeElement));
    swatches.replaceChildren(...palette.map(swatch), ...(palette.length < most ? [add] : []));
    if (focused < 0) return;
    // To the colour that is new or took the place of another, or to where the next is added.
    const near = swatches.children[Math.min(focused, swatches.children.length - 1)];
    (near.querySelector("input") ?? near).focus();
  }

  return { node, show };
}
