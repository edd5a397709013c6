// The few words of DOM that the page's parts share.

export const $ = (id) => document.getElementById(id);

/** An element with attributes and children; texts stay texts. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** `text` where what stands between backticks is code. */
export function words(text) {
  return text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
}

/** Write `text` into an element, if it is another one: an unchanged one is not read out again. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
