// Edges and middles that a moving box keeps to, and the lines that show why.
import { kSide } from "./caption.js";

const kAxes = [
  { near: "left", far: "right", line: "upright" },
  { near: "top", far: "bottom", line: "across" },
];

function linesOf(boxes, { near, far }) {
  const lines = [0, kSide / 2, kSide];
  for (const box of boxes) lines.push(box[near], (box[near] + box[far]) / 2, box[far]);
  return lines;
}

function nearest(lines, places, reach) {
  let best = null;
  for (const place of places) {
    for (const line of lines) {
      const by = line - place;
      if (Math.abs(by) > reach || (best && Math.abs(by) >= Math.abs(best.by))) continue;
      best = { by, line };
    }
  }
  return best;
}

// The box moved onto the nearest line within `reach` on each axis: {box, guides}. `sides` are those
// that the gesture moves; all four move as one.
export function snapped(box, sides, others, reach) {
  const result = { ...box };
  const guides = [];
  const isMove = sides.length === 4;
  kAxes.forEach((axis, i) => {
    const { near, far, line } = axis;
    const moving = [near, far].filter((side) => sides.includes(side));
    if (moving.length === 0) return;
    const places = moving.map((side) => box[side]);
    if (isMove) places.push((box[near] + box[far]) / 2);
    const found = nearest(linesOf(others, axis), places, reach[i]);
    if (!found) return;
    for (const side of moving) result[side] += found.by;
    guides.push({ line, at: found.line });
  });
  return { box: result, guides };
}

// Within the picture, whole numbers, the near side before the far one.
export function inFrame(box) {
  const result = {};
  for (const { near, far } of kAxes) {
    const a = Math.min(kSide, Math.max(0, Math.round(box[near])));
    const b = Math.min(kSide, Math.max(0, Math.round(box[far])));
    result[near] = Math.min(a, b);
    result[far] = Math.max(a, b);
  }
  return result;
}

// Moved as a whole, which stops at the picture's edges; what is outside already may come in.
export function moved(box, right, down) {
  const by = (near, far, distance) => {
    const least = Math.min(0, -box[near]);
    const most = Math.max(0, kSide - box[far]);
    return Math.round(Math.min(most, Math.max(least, distance)));
  };
  const across = by("left", "right", right);
  const along = by("top", "bottom", down);
  return {
    top: box.top + along,
    left: box.left + across,
    bottom: box.bottom + along,
    right: box.right + across,
  };
}
