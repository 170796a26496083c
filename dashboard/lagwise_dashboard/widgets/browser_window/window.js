// Reports whether the window is narrow, and lets charts shrink to the width of the paper when the page is printed.

const narrow = matchMedia("(max-width: 640px)");
const reports = new WeakMap(); // by the element that this is mounted in: what reports to the server now

export default function ({ data, parentElement, setStateValue }) {
  const report = () => {
    if (narrow.matches !== data.is_narrow) setStateValue("is_narrow", narrow.matches);
  };
  const isNew = !reports.has(parentElement);
  reports.set(parentElement, report);
  report();
  if (!isNew) return;
  narrow.addEventListener("change", () => reports.get(parentElement)());
  addEventListener("beforeprint", scaleCharts);
}

// Plotly draws for the width of the window; with a view box its drawing fits any width.
function scaleCharts() {
  for (const svg of document.querySelectorAll(".js-plotly-plot .main-svg")) {
    const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const { style } = svg.closest(".js-plotly-plot");
    style.setProperty("--ratio", `${width} / ${height}`);
    style.setProperty("--width", `${width}px`);
  }
}
