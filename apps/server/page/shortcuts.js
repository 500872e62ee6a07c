// Keys that work anywhere on the page.

const kTyping = "input:not([type='radio'], [type='checkbox']), textarea, select";
const kTools = new Map([["v", "select"], ["o", "obj"], ["t", "text"]]);

export function listenToKeys({ doc, stage, render }) {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest(kTyping);
    const isOpen = document.querySelector("dialog[open]") !== null;
    if (isOpen) return;
    const isCommand = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (isCommand && key === "enter") {
      event.preventDefault();
      if (!event.repeat) render();
      return;
    }
    // The fields of the caption are undone with it, those of the settings on their own.
    const isOurs = !isTyping || !event.target.closest("#settings");
    if (isCommand && isOurs && (key === "z" || key === "y")) {
      event.preventDefault();
      if (key === "y" || event.shiftKey) doc.redo();
      else doc.undo();
      return;
    }
    if (key === "escape" && !event.defaultPrevented) {
      if (stage.tool !== "select") stage.setTool("select");
      else {
        const row = event.target.closest(".element");
        doc.select(-1);
        row?.querySelector(".head").focus();
      }
      return;
    }
    if (isCommand || event.altKey || isTyping) return;
    if (kTools.has(key)) stage.setTool(kTools.get(key));
    else if (key === "h") stage.showBoxes(!stage.hasBoxes);
  });
}
