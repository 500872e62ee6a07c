// Captions to start from: one set that the small model can paint, one for Ideogram 4.
import { jsonText, parseJson } from "./json_text.js";

function thing(bbox, desc, ...palette) {
  const colours = palette.length > 0 ? { color_palette: palette } : {};
  return { type: "obj", bbox, desc, ...colours };
}

function letters(bbox, text, desc, ...palette) {
  const colours = palette.length > 0 ? { color_palette: palette } : {};
  return { type: "text", bbox, text, desc, ...colours };
}

function caption(summary, background, elements, style) {
  return {
    high_level_description: summary,
    ...(style ? { style_description: style } : {}),
    compositional_deconstruction: { background, elements },
  };
}

const kEmpty = { name: "Empty", about: "Draw everything yourself" };

const kSmall = [
  { name: "Poster", about: "A word, a house, a tree, a sun", caption: caption(
    "A simple poster.",
    "A vertical gradient from #8ECDF0 to #E4F6FB",
    [
      letters([70, 90, 250, 700], "HELLO", "Bold sans-serif letters", "#1B2F6B"),
      thing([60, 740, 280, 960], "A sun with rays", "#FFC21A", "#F28C1B"),
      thing([360, 90, 900, 540], "A house with a roof", "#F6B26B", "#B3261E"),
      thing([420, 590, 900, 930], "A round tree", "#2E7D32", "#6D4C41"),
    ]) },
  { name: "Product", about: "A cup and its name", caption: caption(
    "A poster for a coffee shop.",
    "A solid warm beige background in #F2E3C6",
    [
      letters([100, 150, 300, 850], "BREW", "Large bold dark brown letters", "#4A2C17"),
      thing([400, 300, 850, 700], "A red coffee cup", "#C0392B", "#FFFFFF"),
    ]) },
  { ...kEmpty, caption: caption("A simple poster.", "A solid background in #FAF3DC", []) },
];

const kFull = [
  { name: "Poster", about: "A title, a motif, a line of details", shape: [2, 3],
    paper: ["#1B2A41", "#FFF4E0"], caption: caption(
    "A tall poster for a summer night market, with a paper lantern fish above the title and one " +
      "line of details at the foot.",
    "A deep blue sky that fades to cream at the foot, with a few scattered printed stars.",
    [
      thing([80, 180, 540, 820], "A large paper lantern in the shape of a carp, lit from within, " +
        "hanging from a thin string.", "#F25F4C", "#FFC857"),
      letters([580, 100, 800, 900], "NIGHT\nMARKET", "Two stacked lines of heavy rounded " +
        "capitals in cream, centred.", "#FFF4E0"),
      letters([850, 150, 920, 850], "Saturday 18 July \u00b7 from 19:00 \u00b7 Old Harbour",
        "One small line of plain sans-serif text in dark blue, centred."),
    ],
    {
      aesthetics: "festive, warm, hand-made, generous margins",
      lighting: "flat, with a soft glow around the lantern",
      medium: "graphic_design",
      art_style: "screen print in four colours with slightly misaligned inks and paper grain",
      color_palette: ["#1B2A41", "#F25F4C", "#FFC857", "#FFF4E0"],
    }) },
  { name: "Product", about: "A studio photograph with a label", shape: [4, 5],
    paper: ["#E9E2D3", "#D8CFBC"], caption: caption(
    "A studio product photograph of a matte green glass bottle of olive oil on a block of pale " +
      "stone.",
    "A seamless backdrop of warm off-white with a soft gradient towards the floor.",
    [
      thing([120, 390, 860, 610], "A tall slim bottle of matte dark green glass with a natural " +
        "cork and a narrow cream label.", "#2F4A36", "#E9E2D3"),
      letters([520, 430, 620, 570], "OLEA\n2026", "Small widely spaced serif capitals in gold on " +
        "the label, with the year below.", "#C9A227"),
      thing([840, 250, 960, 750], "A rough-cut block of pale travertine below the bottle."),
    ],
    {
      aesthetics: "minimal, premium, calm",
      lighting: "one large soft light from the left, a gentle shadow to the right",
      photo: "85mm lens, f/8, eye level, the whole bottle in focus",
      medium: "photograph",
      color_palette: ["#2F4A36", "#E9E2D3", "#C9A227"],
    }) },
  { ...kEmpty, shape: [1, 1], caption: caption("", "", []) },
];

// {name, about, text, caption} of each; `shape` and `paper` are for its frame and its card.
export function templatesFor(guide) {
  return (guide.isSmall ? kSmall : kFull).map((each) => ({ ...each,
    text: jsonText(parseJson(JSON.stringify(each.caption)).value) }));
}
