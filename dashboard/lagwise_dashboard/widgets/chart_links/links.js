// Follows the links of the points of charts, and those beside them without loading the page anew.

const CHART = ".js-plotly-plot";
const followed = new WeakSet(); // charts

export default function () {
  document.addEventListener("pointerdown", pressed, true);
  document.addEventListener("click", clicked, true);
  return () => {
    document.removeEventListener("pointerdown", pressed, true);
    document.removeEventListener("click", clicked, true);
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
  const link = event.target.closest(`${CHART} a`);
  if (!link || event.shiftKey) return;
  event.preventDefault();
  follow(link.href.baseVal, event);
}
