// Asks for the first sight of the page that is opened, shows it, and takes it away when the page itself stands. PATH is
// where it is asked for, and PAGES are those that have one; the first is also at the root.

const AT_THE_LATEST_MS = 30_000; // a page that never comes says why; old data does not pass for the present
// Streamlit says whether the script of the page runs. Before it has run once, nothing of the page is there.
const STANDS = '[data-test-script-state="notRunning"] .st-key-on_paper';

const name = location.pathname.split("/").pop() || PAGES[0];
if (PAGES.includes(name)) {
  fetch(new URL(`./${PATH}/${name}${location.search}`, document.baseURI))
    .then((answer) => (answer.ok ? answer.text() : ""))
    .then((made) => made && show(made))
    .catch(() => {}); // the page itself says that there is no connection
}

function show(made) {
  if (document.querySelector(STANDS)) return;
  const sight = document.createElement("div");
  sight.id = "first_sight";
  sight.classList.add(name, ...chosenTheme());
  sight.innerHTML = made;
  for (const part of sight.querySelectorAll("[data-script]")) mount(part);

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
