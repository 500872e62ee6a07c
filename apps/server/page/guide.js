// What the loaded model can paint, in words for the person who describes a picture. The small model
// that ships with Octet knows a few dozen things and short words; it would paint anything else
// badly, and without a word.
import { isText, textIn } from "./caption.js";

const kThings = ("circle,square,triangle,diamond,star,ring,cross,heart,hexagon,arrow,moon,cloud," +
  "lightning bolt,drop,sun,house,tree,pine,flower,face,mushroom,boat,car,cup,striped panel," +
  "checkerboard,dotted panel").split(",");
const kNames = new RegExp(`\\b(?:${kThings.join("|")}|disc|ball|dot|rectangle|block|panel|hoop|` +
  "plus sign|crescent|bolt|smiley|mug)s?\\b", "i");
const kMostThings = 4;
const kMostLetters = 8;
const kLetters = /^[a-zA-Z0-9!?&%+-]*$/;

export class Guide {
  constructor() {
    this.isSmall = false;
  }

  // The model as /v1/models tells of it.
  take(model) {
    this.isSmall = model?.prompt === "words";
  }

  get things() {
    return this.isSmall ? kThings : [];
  }

  get example() {
    return this.isSmall
      ? "a red heart above the word HELLO on a yellow background"
      : "A lighthouse on a cliff in a winter storm, painted in oil with thick strokes";
  }

  get aboutWords() {
    return this.isSmall
      ? `This small model paints: ${kThings.join(", ")}, and short words in quotes.`
      : "Boxes say where each thing is and give better pictures; words are a quick start.";
  }

  aboutLetters(element) {
    if (!this.isSmall) return "Enter begins a new line.";
    const text = textIn(element, "text");
    if (/\s/.test(text)) return "This small model paints one word per box: add another box.";
    if (text.length > kMostLetters) {
      return `This small model paints up to ${kMostLetters} letters; this has ${text.length}.`;
    }
    if (!kLetters.test(text)) return "This small model paints plain letters and digits alone.";
    return "One word of up to 8 letters.";
  }

  aboutThing(element) {
    if (!this.isSmall || isText(element)) return "";
    const text = textIn(element, "desc");
    return text.trim() !== "" && kNames.test(text) ? "" : `It paints: ${kThings.join(", ")}.`;
  }

  aboutBackground() {
    return this.isSmall ? "A colour in words, or a gradient from one to another." : "";
  }

  aboutAll(elements) {
    return this.isSmall && elements.length > kMostThings
      ? `This small model paints up to ${kMostThings} things; here are ${elements.length}.` : "";
  }
}
