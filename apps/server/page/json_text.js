// JSON text and values without loss: an object is a Map, which keeps the order of every key, also
// of "10" and "2"; a number that JavaScript would write otherwise ("1.0", 20 digits) stays as it
// was written. parseJson() also says where each value stands in the text.

// A number that keeps its spelling.
export class Numeral {
  constructor(source) {
    this.source = source;
  }
  valueOf() {
    return Number(this.source);
  }
}

export class JsonFault extends Error {
  constructor(message, at) {
    super(message);
    this.at = at; // offset in the text
  }
}

const kMostNested = 100;
const kSpace = /[ \t\r\n]*/y;
const kNumber = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const kString = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const kWords = new Map([["true", true], ["false", false], ["null", null]]);

class Reader {
  constructor(text) {
    this.text = text;
    this.at = text.startsWith("\ufeff") ? 1 : 0;
    this.places = new Map();
    this.depth = 0;
  }

  fail(expected) {
    const found = this.at < this.text.length ? `"${this.text[this.at]}"` : "the end";
    throw new JsonFault(`expected ${expected}, found ${found}`, this.at);
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return null;
    this.at += found[0].length;
    return found[0];
  }

  // Whether the next character is this one; if so, behind it and the space after it.
  next(character) {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    this.take(kSpace);
    return true;
  }

  whole() {
    this.take(kSpace);
    const value = this.value("$", this.at);
    this.take(kSpace);
    if (this.at < this.text.length) this.fail("nothing more");
    return value;
  }

  // `from` is where its key begins, for members of objects.
  value(path, from) {
    const start = this.at;
    if (++this.depth > kMostNested) throw new JsonFault("it is nested too deeply", start);
    const value = this.bare(path);
    this.depth -= 1;
    this.places.set(path, { from, start, end: this.at });
    return value;
  }

  bare(path) {
    const first = this.text[this.at];
    if (first === "{") return this.object(path);
    if (first === "[") return this.array(path);
    if (first === '"') return this.string();
    for (const [word, value] of kWords) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    const number = this.take(kNumber);
    if (number === null) this.fail("a value");
    const value = Number(number);
    return String(value) === number ? value : new Numeral(number);
  }

  string() {
    const start = this.at;
    const token = this.take(kString);
    if (token !== null) return JSON.parse(token);
    throw new JsonFault("the text in quotes is not closed, or has a wrong escape", start);
  }

  object(path) {
    const object = new Map();
    this.next("{");
    if (this.text[this.at] !== "}") {
      do {
        const from = this.at;
        if (this.text[this.at] !== '"') this.fail("a key in quotes");
        const key = this.string();
        if (object.has(key)) throw new JsonFault(`the key "${key}" is there twice`, from);
        this.take(kSpace);
        if (!this.next(":")) this.fail('":"');
        object.set(key, this.value(`${path}.${key}`, from));
        this.take(kSpace);
      } while (this.next(","));
    }
    if (this.text[this.at] !== "}") this.fail('"," or "}"');
    this.at += 1;
    return object;
  }

  array(path) {
    const array = [];
    this.next("[");
    if (this.text[this.at] !== "]") {
      do {
        array.push(this.value(`${path}[${array.length}]`, this.at));
        this.take(kSpace);
      } while (this.next(","));
    }
    if (this.text[this.at] !== "]") this.fail('"," or "]"');
    this.at += 1;
    return array;
  }
}

// {value, places}: places has {from, start, end} by path ("$.a.b[2]"). Throws JsonFault.
export function parseJson(text) {
  const reader = new Reader(text);
  const value = reader.whole();
  return { value, places: reader.places };
}

function isScalar(value) {
  return !(value instanceof Map) && !Array.isArray(value);
}

function scalarText(value) {
  return value instanceof Numeral ? value.source : JSON.stringify(value);
}

// As people write captions: lists of numbers or colours on one line.
export function jsonText(value, indent = "") {
  const deeper = `${indent}  `;
  if (value instanceof Map) {
    if (value.size === 0) return "{}";
    const members = [...value].map(
      ([key, member]) => `${deeper}${JSON.stringify(key)}: ${jsonText(member, deeper)}`,
    );
    return `{\n${members.join(",\n")}\n${indent}}`;
  }
  if (!Array.isArray(value)) return scalarText(value);
  if (value.every(isScalar)) return `[${value.map(scalarText).join(", ")}]`;
  const entries = value.map((entry) => `${deeper}${jsonText(entry, deeper)}`);
  return `[\n${entries.join(",\n")}\n${indent}]`;
}

export function copyOf(value) {
  if (value instanceof Map) return new Map([...value].map(([key, each]) => [key, copyOf(each)]));
  return Array.isArray(value) ? value.map(copyOf) : value;
}

// {line, column}, both from 1.
export function placeInText(text, at) {
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  return { line, column: at - before.lastIndexOf("\n") };
}
