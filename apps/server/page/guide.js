// What the loaded model can paint, in words for the person who describes a picture. The small model
// that ships with Octet knows a few dozen things and short words; it would paint anything else
// badly, and without a word.
import { isText, textIn } from "./caption.js";

// Each with the colours that it is painted in best; a blue one where it has none. They and the
// limits below are a copy of words.json and octet_trained_for.json in models/demo; a test compares
// them.
const kColours = {
  circle: [], square: [], triangle: [], diamond: [], star: ["#F5B301"], ring: [], cross: [],
  heart: ["#DC2828"], hexagon: [], arrow: [], moon: ["#F2D06B"], cloud: ["#FFFFFF"],
  "lightning bolt": ["#FFC21A"], drop: ["#285AD7"], sun: ["#FFC21A", "#F28C1B"],
  house: ["#F6B26B", "#B3261E"], tree: ["#2E7D32", "#6D4C41"], pine: ["#1F6B3A", "#6D4C41"],
  flower: ["#D7289F", "#FFC21A"], face: ["#FFD23F", "#3B2A1A"], mushroom: ["#DC2828", "#C8A078"],
  boat: ["#7D502D", "#D64550"], car: ["#DC2828", "#1F1F1F"], cup: ["#148C8C", "#0B5757"],
  "striped panel": ["#DC2828", "#FFFFFF"], checkerboard: ["#1F1F1F", "#FFFFFF"],
  "dotted panel": ["#285AD7", "#FFFFFF"],
};
const kThings = Object.keys(kColours);
const kOwnColour = "#285AD7";
const kNames = new RegExp(`\\b(?:${kThings.join("|")}|disc|ball|dot|rectangle|block|panel|hoop|` +
  "plus sign|crescent|bolt|smiley|mug)s?\\b", "i");
const kMostThings = 4;
const kMostLetters = 8;
const kLetters = /^[a-zA-Z0-9!?&%+-]*$/;

const warning = (rule) => ({ rule, severity: "warning" });

// Its sentences are plain hints, or warnings as the check of a caption has them.
export class Guide {
  constructor() {
    this.isSmall = false;
  }

  // The model as /v1/models tells of it.
  take(model) {
    this.isSmall = model?.prompt === "words";
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
    if (/\s/.test(text)) return warning("This small model paints a word per box: add another box.");
    if (text.length > kMostLetters) {
      return warning(`This small model paints up to ${kMostLetters} letters, not ${text.length}.`);
    }
    if (!kLetters.test(text)) {
      return warning("This small model paints plain letters and digits alone.");
    }
    return `One word of up to ${kMostLetters} letters.`;
  }

  aboutThing(element) {
    if (this.ideasFor(element).length === 0) return "";
    return textIn(element, "desc").trim() === "" ? "Say which thing, or choose one:"
      : warning("This small model does not know that. It paints:");
  }

  // What the thing could be, as long as it is nothing that the model knows.
  ideasFor(element) {
    if (!this.isSmall || isText(element)) return [];
    return kNames.test(textIn(element, "desc")) ? [] : kThings;
  }

  // Of an idea that was chosen, or of new letters.
  coloursOf(thing) {
    return kColours[thing]?.length > 0 ? kColours[thing] : [kOwnColour];
  }

  get letterColours() {
    return this.isSmall ? ["#141E5A"] : [];
  }

  aboutBackground() {
    return this.isSmall ? "A colour in words, or a gradient from one to another." : "";
  }

  aboutAll(elements) {
    if (!this.isSmall || elements.length <= kMostThings) return "";
    return `This small model paints up to ${kMostThings} things well; here are ${elements.length}.`;
  }
}
