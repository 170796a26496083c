// A chart: Plotly draws the figure that the server has made, in the colours of the page.
//
// What else is on a page is on the screen before Plotly's script runs, which keeps the browser busy for a while.

const CONFIG = { displayModeBar: false, scrollZoom: false, showTips: false };
const FONT_SIZE = 12;
// A browser that is never idle draws after so many milliseconds.
const IDLE_AT_LATEST_MS = 2000;
const decoder = new TextDecoder();
const charts = new WeakMap(); // by the element that a chart is mounted in

export default function ({ data, parentElement, setTriggerValue }) {
  if (!charts.has(parentElement)) charts.set(parentElement, new Chart(parentElement));
  const chart = charts.get(parentElement);
  chart.show(decoder.decode(data), (ends) => setTriggerValue("stretch", ends));
  return () => {
    // Streamlit also calls this for a run that a later one has overtaken: that one still shows the chart.
    if (parentElement.isConnected) return;
    charts.delete(parentElement);
    chart.remove();
  };
}

class Chart {
  constructor(root) {
    this.root = root;
    this.element = make("div", { role: "figure" });
    this.width = null; // that it is drawn for; null while it is not
    this.waits = false;
    this.isPressed = false; // what is drawn anew loses the stretch that is being dragged over
    this.isLate = false; // it was to be drawn while it was pressed
    root.append(this.element);
    this.resized = new ResizeObserver(() => {
      if (root.clientWidth !== this.width) this.draw();
    });
    this.resized.observe(root);
    this.element.addEventListener("pointerdown", ({ button }) => (this.isPressed = button === 0), true);
    this.released = new AbortController();
    for (const end of ["pointerup", "pointercancel", "contextmenu", "blur"]) {
      addEventListener(end, () => this.release(), { capture: true, signal: this.released.signal });
    }
  }

  // `written`: {alt, reports_stretch, figure}, as JSON.
  show(written, report) {
    this.written = written;
    this.report = report;
    this.element.setAttribute("aria-label", JSON.parse(written).alt);
    this.draw();
  }

  // When the browser has nothing else to do.
  async draw() {
    if (this.waits) return;
    this.waits = true;
    try {
      await idle();
      if (!this.plotly) {
        ({ default: this.plotly } = await import(new URL(LIBRARY, document.baseURI)));
        await idle();
      }
    } finally {
      this.waits = false;
    }
    this.drawNow();
  }

  release() {
    this.isPressed = false;
    if (this.isLate) this.draw();
  }

  drawNow() {
    this.isLate = this.isPressed;
    const width = this.root.clientWidth;
    // On paper the drawing of the screen is shrunk (browser_window/window.js).
    if (!this.root.isConnected || width === 0 || this.isLate || matchMedia("print").matches) return;
    const isFirst = this.width === null;
    this.width = width;
    const { figure, reports_stretch } = JSON.parse(this.written);
    const layout = { ...figure.layout, ...themed(figure.layout, coloursOf(this.root)), width };
    if (reports_stretch) Object.assign(layout, { dragmode: "select", selectdirection: "h" });
    this.plotly.react(this.element, figure.data, layout, CONFIG);
    if (isFirst) this.element.on("plotly_selected", (selected) => this.selected(selected));
  }

  selected(selected) {
    const box = selected?.selections?.at(-1);
    if (box) this.report([box.x0, box.x1]);
  }

  remove() {
    this.resized.disconnect();
    this.released.abort();
    if (this.width !== null) this.plotly.purge(this.element);
    this.element.remove();
  }
}

function idle() {
  return new Promise((resolve) => {
    if (window.requestIdleCallback) requestIdleCallback(resolve, { timeout: IDLE_AT_LATEST_MS });
    else setTimeout(resolve); // Safari has no such moments
  });
}

// The colours and the font of the page, light or dark, by Streamlit's names for them.
function coloursOf(root) {
  const style = getComputedStyle(root);
  const named = (name) => style.getPropertyValue(`--st-${name}`).trim();
  return { text: named("text-color"), page: named("background-color"), line: named("border-color"), font: named("font") };
}

function themed({ hoverlabel }, { text, page, line, font: family }) {
  const font = { color: text, family, size: FONT_SIZE };
  return { font, hoverlabel: { ...hoverlabel, bgcolor: page, bordercolor: line, font } };
}
