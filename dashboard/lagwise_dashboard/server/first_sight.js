// Asks for the first sight of the page that is opened, shows it, starts Streamlit, and takes the first sight away when
// the page itself stands. PATH is where it is asked for, PAGES are those that have one (the first is also at the root),
// ENTRY is Streamlit's script, and ELEMENTS are those of its elements.

const AT_THE_LATEST_MS = 30_000; // a page that never comes says why; old data does not pass for the present
// Streamlit's scripts keep the browser busy for a second, and nothing else is drawn meanwhile. They are loaded in this
// time, too.
const STREAMLIT_WAITS_MS = 500;
// Streamlit says whether the script of the page runs. Before it has run once, nothing of the page is there.
const STANDS = '[data-test-script-state="notRunning"] .st-key-on_paper';

const name = location.pathname.split("/").pop() || PAGES[0];
const parsed = new Promise((resolve) => addEventListener("DOMContentLoaded", resolve));
const sight = PAGES.includes(name) ? asked() : null;
Promise.all([parsed, Promise.race([sight, pause(STREAMLIT_WAITS_MS)])]).then(() => {
  const script = document.createElement("script");
  Object.assign(script, { type: "module", crossOrigin: "", src: new URL(ENTRY, document.baseURI) });
  // Run while Streamlit waits for the server's answer, so that what they draw is not waited for later.
  script.addEventListener("load", () => ELEMENTS.forEach((path) => import(new URL(path, document.baseURI))));
  document.head.append(script);
});

// Done when the first sight is on the screen, or will not be.
async function asked() {
  try {
    const answer = await fetch(new URL(`./${PATH}/${name}${location.search}`, document.baseURI));
    const made = answer.ok ? await answer.text() : "";
    await parsed;
    if (made && !document.querySelector(STANDS)) await show(made);
  } catch {} // the page itself says that there is no connection
}

async function show(made) {
  const sight = document.createElement("div");
  sight.id = "first_sight";
  sight.classList.add(name, ...chosenTheme());
  sight.innerHTML = made;

  const leave = () => {
    observer.disconnect();
    removeEventListener("popstate", leave);
    sight.remove();
  };
  const observer = new MutationObserver(() => document.querySelector(STANDS) && leave());
  observer.observe(document.documentElement, { subtree: true, childList: true, attributeFilter: ["data-test-script-state"] });
  addEventListener("popstate", leave); // another page is opened
  setTimeout(leave, AT_THE_LATEST_MS);
  document.body.append(sight);
  await Promise.all([...sight.querySelectorAll("[data-script]")].map(mount));
  await new Promise((resolve) => requestAnimationFrame(resolve));
  await pause(0); // until that has been drawn
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

// The theme that the reader has chosen in Streamlit's menu; without a choice it is the system's.
function chosenTheme() {
  const stored = Object.keys(localStorage).find((key) => key.startsWith(`stActiveTheme-${location.pathname}-v`));
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
