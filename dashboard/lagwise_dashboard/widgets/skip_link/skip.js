// Moves the focus to the title of the page: the next stop of the Tab key is the first one after it.

const mounted = new WeakSet(); // elements that have the button

export default function ({ parentElement }) {
  if (mounted.has(parentElement)) return;
  mounted.add(parentElement);
  const button = make("button", { type: "button" }, ["Skip the menu"]);
  button.addEventListener("click", () => {
    const title = document.querySelector('[data-testid="stMain"] [data-testid="stHeading"] :is(h1, h2)');
    title?.setAttribute("tabindex", "-1");
    title?.focus();
  });
  parentElement.append(button);
}
