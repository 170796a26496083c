// Asks for the first sight of the page that is opened, shows it, starts Streamlit, and takes the first sight away when
// the page itself stands. PATH is where it is asked for, PAGES are those that have one (the first is also at the root),
// ENTRY is Streamlit's script, and ELEMENTS are those of its elements.

const AT_THE_LATEST_MS = 30_000; // a page that never comes says why; old data does not pass for the present
// Streamlit's scripts keep the browser busy for a second, and nothing else is drawn meanwhile. They are loaded in this
// time, too.
const STREAMLIT_WAITS_MS = 500;
// Streamlit says whether the script of the page runs. Before it has run once, nothing of the page is there.
const STANDS = '[data-test-script-state="notRunning"] :is(.st-key-on_paper, [data-testid="stAlert"], [data-testid="stException"])';

// Streamlit draws a grey bar for what it has no script for yet.
const LOADS = '[data-testid="stSkeleton"]';

const opened = location.pathname;
const name = opened.split("/").pop() || PAGES[0];
const parsed = new Promise((resolve) => addEventListener("DOMContentLoaded", resolve));
let element = null;
let isOver = false; // the page itself stands, or another one was opened
const observer = new MutationObserver(() => {
  const stands = document.querySelector(STANDS) && !document.querySelector(LOADS);
  if (stands || location.pathname !== opened) leave();
});
const shown = PAGES.includes(name) ? asked() : null;
Promise.all([parsed, Promise.race([shown, pause(STREAMLIT_WAITS_MS)])]).then(() => {
  const script = document.createElement("script");
  Object.assign(script, { type: "module", crossOrigin: "", src: new URL(ENTRY, document.baseURI) });
  // Run while Streamlit waits for the server's answer, so that what they draw is not waited for later.
  script.addEventListener("load", () => ELEMENTS.forEach((path) => import(new URL(path, document.baseURI))));
  document.head.append(script);
});

// Done when the first sight is on the screen, or will not be.
async function asked() {
  const watched = { subtree: true, childList: true, attributeFilter: ["data-test-script-state"] };
  observer.observe(document.documentElement, watched);
  addEventListener("popstate", leave);
  setTimeout(leave, AT_THE_LATEST_MS);
  try {
    const answer = await fetch(new URL(`./${PATH}/${name}${location.search}`, document.baseURI));
    const made = answer.ok ? await answer.text() : "";
    await parsed;
    if (made && !isOver) await show(made);
  } catch {} // the page itself says that there is no connection
}

async function show(made) {
  element = document.createElement("div");
  element.id = "first_sight";
  element.classList.add(name, ...chosenTheme());
  element.innerHTML = made;
  document.body.append(element);
  await Promise.all([...element.querySelectorAll("[data-script]")].map(mount));
  await new Promise((resolve) => requestAnimationFrame(resolve));
  await pause(0); // until that has been drawn
}

function leave() {
  isOver = true;
  observer.disconnect();
  removeEventListener("popstate", leave);
  element?.remove();
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

// The theme that the reader has chosen in Streamlit's menu; without a choice it is the system's.
function chosenTheme() {
  const stored = Object.keys(localStorage).find((key) => key.startsWith(`stActiveTheme-${opened}-v`));
  return ["light", "dark"].filter((theme) => stored && localStorage[stored].toLowerCase().includes(theme));
}

// A component of the page, with the data that the page will give it.
async function mount(part) {
  const data = JSON.parse(part.firstElementChild.textContent);
  const parentElement = part.attachShadow({ mode: "open" });
  const component = await import(new URL(part.dataset.script, document.baseURI));
  component.dress(parentElement);
  component.default({ data, parentElement, setTriggerValue() {}, setStateValue() {} });
}
