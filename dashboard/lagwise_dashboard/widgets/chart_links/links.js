// Follows the links of the points of charts, and those beside them without loading the page anew.

const CHART = ".js-plotly-plot";
const LINK = `${CHART} a`;
const followed = new WeakSet(); // charts
const redrawn = new MutationObserver(giveBack); // watches the page while a link beside a chart has the focus
let focused = null; // that link

export default function () {
  document.addEventListener("pointerdown", pressed, true);
  document.addEventListener("click", clicked, true);
  document.addEventListener("focusin", entered, true);
  document.addEventListener("focusout", left, true);
  return () => {
    document.removeEventListener("pointerdown", pressed, true);
    document.removeEventListener("click", clicked, true);
    document.removeEventListener("focusin", entered, true);
    document.removeEventListener("focusout", left, true);
    hold(null);
  };
}

// Charts come and go with every drawing: one that is pressed is there.
function pressed({ target }) {
  const chart = target.closest(CHART);
  if (!chart || followed.has(chart)) return;
  followed.add(chart);
  chart.on("plotly_click", ({ points, event }) => {
    const link = points.map((point) => chart.layout.meta?.[placeOf(point)]).find(Boolean);
    if (link) follow(link, event);
  });
}

function placeOf({ data, pointNumber, customdata }) {
  return data.type === "heatmap" ? pointNumber[0] : customdata;
}

// A name beside the chart that is a link, whether it was clicked or chosen by the keyboard.
function clicked(event) {
  const link = event.target.closest(LINK);
  if (!link || event.shiftKey) return;
  event.preventDefault();
  follow(link.href.baseVal, event);
}

// Plotly makes a name beside a chart anew when its place has changed, and a chart may be made anew as a whole: the link
// that leads to the same place gets the focus back.

function entered({ target }) {
  hold(target.closest(LINK));
}

function left() {
  setTimeout(() => {
    // A link that is gone has lost the focus, and has not given it to anything.
    if (focused?.isConnected && document.activeElement !== focused) hold(null);
  });
}

function hold(link) {
  focused = link;
  if (link) redrawn.observe(document.body, { childList: true, subtree: true });
  else redrawn.disconnect();
}

function giveBack() {
  if (focused.isConnected) return;
  if (document.activeElement !== document.body) return hold(null);
  const href = focused.href.baseVal;
  const again = [...document.querySelectorAll(LINK)].find((link) => link.href.baseVal === href);
  again?.focus({ preventScroll: true });
}
