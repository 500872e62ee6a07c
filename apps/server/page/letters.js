// Letters in a box as large as they fit, before the model has painted them.
import { h } from "./dom.js";

const pen = h("canvas").getContext("2d");
const kPenPixels = 100;
const kLeastEms = 0.5; // of an empty line

// For the style of `node`: how many lines there are, and how wide the widest is.
export function fitLetters(node, text) {
  pen.font = `700 ${kPenPixels}px ${getComputedStyle(document.body).fontFamily}`;
  const lines = text.split("\n");
  const ems = lines.map((line) => pen.measureText(line).width / kPenPixels);
  node.style.setProperty("--lines", String(lines.length));
  node.style.setProperty("--ems", String(Math.max(kLeastEms, ...ems)));
}
