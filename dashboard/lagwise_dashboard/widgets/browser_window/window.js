// Reports whether the window is narrow, and prepares the page for the paper when it is printed.

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
  const paper = paperStyle(data.paper);
  addEventListener("beforeprint", () => {
    scaleCharts();
    lighten(paper);
    document.querySelector(".st-key-on_paper")?.setAttribute("data-address", location.href);
  });
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

// A dark page is printed as a light one: with these colours, and with the rules for [data-dark] in page.css.
function paperStyle(colours) {
  const style = new CSSStyleSheet({ media: "print" });
  const rules = Object.entries(colours).map(([name, colour]) => `${name}: ${colour} !important;`);
  style.replaceSync(`[data-dark], [data-dark] * { ${rules.join(" ")} }`);
  return style;
}

function lighten(paper) {
  const scheme = getComputedStyle(document.querySelector(".stApp")).colorScheme;
  document.documentElement.toggleAttribute("data-dark", scheme === "dark");
  if (!document.adoptedStyleSheets.includes(paper)) document.adoptedStyleSheets.push(paper);
}
