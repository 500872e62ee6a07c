// What keeps a caption from being rendered, before the server is asked for a picture.
import { elementsOf, isEmpty, kindName, titleOf } from "./caption.js";

// A sentence, and the index of the thing that it is about, if it is about one; or null. `blocking`
// is what the server found and cannot mend.
export function obstacleIn(root, [first, ...others]) {
  if (isEmpty(root)) {
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
