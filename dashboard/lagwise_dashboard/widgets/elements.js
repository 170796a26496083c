// What the scripts of several components use: component.py puts this in front of each, and STYLE and LIBRARY in front
// of this.

const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);

// Gives the root that a component is mounted in its style. One in the page itself has the style of the page.
export function dress(root) {
  if (root instanceof ShadowRoot && !root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
}

function make(tag, attributes = {}, children = []) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Hands a text over to the browser as a file. It came on the page's own connection: a file that lies on the server under
// an address is given to whoever has that.
function save(name, text, type) {
  const href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

function makeSvg(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// As the browser's back button does: Streamlit then stops the refreshes of this page before it asks for the next one.
// Asked for by the server instead, the next page is lost when a refresh comes in between.
function go(href) {
  history.pushState(null, "", href);
  dispatchEvent(new PopStateEvent("popstate"));
}

// A link that was clicked, or chosen by the keyboard: in a tab of its own where that is asked for.
function follow(href, event) {
  if (event.ctrlKey || event.metaKey) window.open(href, "_blank", "noopener");
  else go(href);
}

// An explanation next to what it explains: below it, or above where the window ends.
function showBeside(popover, at) {
  popover.showPopover();
  const above = at.bottom + popover.offsetHeight > innerHeight && at.top > popover.offsetHeight;
  popover.style.left = `${Math.max(4, Math.min(at.left, innerWidth - popover.offsetWidth - 4))}px`;
  popover.style.top = `${above ? at.top - popover.offsetHeight - 4 : at.bottom + 4}px`;
}

