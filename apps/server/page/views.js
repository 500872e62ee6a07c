// Which part of the page is seen where there is no room for all of it, and the theme.
import { byId, h, icon } from "./dom.js";
import { recall, remember } from "./store.js";

const kViews = [["picture", "Picture", "picture"], ["describe", "Describe", "describe"],
  ["settings", "Settings", "settings"], ["json", "JSON", "code"],
  ["gallery", "Gallery", "gallery"]];
const wide = matchMedia("(min-width: 1180px)");
const small = matchMedia("(max-width: 699px)");

// The view that is there, whatever was asked for on a screen of another size.
function seen(view) {
  if (wide.matches) return view === "json" ? "json" : "settings";
  return !small.matches && view === "picture" ? "describe" : view;
}

export class Views {
  constructor() {
    this.buttons = kViews.map(([view, label, image]) =>
      h("button", { type: "button", "data-view": view, onclick: () => this.show(view) },
        icon(image), label));
    byId("views").append(...this.buttons);
    for (const media of [wide, small]) media.addEventListener("change", () => this.update());
    this.show(small.matches ? "picture" : (recall("view") ?? "picture"));
  }

  show(view) {
    this.view = view;
    byId("desk").dataset.view = view;
    remember("view", view);
    this.update();
  }

  // To the forms, from the picture of a small screen or from another view.
  reach(view) {
    if (wide.matches && view !== "json" && view !== "settings") return;
    if (seen(this.view) !== view && !(view === "picture" && !small.matches)) this.show(view);
  }

  update() {
    const now = seen(this.view);
    for (const button of this.buttons) {
      if (button.dataset.view === now) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }
}

export function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  remember("theme", root.dataset.theme);
}
