// What keeps a caption from being rendered, before the server is asked for a picture.
import { elementsOf, isEmpty, kindName, titleOf } from "./caption.js";

// A sentence, and the index of the thing that it is about, if it is about one; or null. `findings`
// are the server's; `root` is what the caption said when it could last be read.
export function obstacleIn(root, findings) {
  // Those that Octet cannot mend by itself.
  const blocking = findings.filter(({ severity, fixable }) => severity === "error" && !fixable);
  const [first, ...others] = blocking;
  const isUnread = first?.path === "$";
  if (isEmpty(root) && !isUnread) {
    return { sentence: "Nothing is on the picture yet. Draw a box, or begin with a template." };
  }
  if (first) {
    const more = others.length > 0 ? ` And ${others.length} more.` : "";
    return { sentence: `The caption needs mending: ${first.rule}.${more}`,
      element: first.place.element };
  }
  const elements = elementsOf(root);
  const element = elements.findIndex((each) => titleOf(each) === "");
  if (element < 0) return null;
  const name = `${kindName(elements[element])} ${element + 1}`;
  return { sentence: `${name} is empty: say what is there, or remove it.`, element };
}
