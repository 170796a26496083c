// A cell for each group, worst first. All cells of a status are one shape; the pointer's place says which cell it is on.
// The cells are one stop of the Tab key: arrow keys walk them, Enter opens the group. The next stops are the names of the
// blocks.

const strips = new WeakMap(); // by the element that a strip is mounted in
const PITCHES = [18, 15, 12, 10, 8, 7, 6, 5]; // pixels from one cell to the next: the largest that fits
const HEIGHT = 48; // pixels that the cells may be high, where a smaller pitch helps
const FEW = 24; // so many cells, without blocks, stand beside the sentence
const BLOCK_WIDTH = 132; // pixels at least, of a block with a name; as in the styles
const GAP = 12; // pixels between blocks; as in the styles

export default function ({ data, parentElement, setTriggerValue }) {
  if (!strips.has(parentElement)) strips.set(parentElement, new Strip(parentElement));
  strips.get(parentElement).draw(data, setTriggerValue);
}

class Strip {
  constructor(root) {
    this.root = root;
    this.at = -1; // the cell that the arrow keys are on
    this.stop = null; // whose cell that is: a refresh may move it
    this.pointer = null; // where the pointer rests on the cells; null where it does not, or the keyboard was used since
    this.sentence = make("p", { class: "sentence" });
    this.legend = make("div", { class: "legend", role: "toolbar", "aria-label": "Statuses" });
    this.cells = make("div", { class: "cells", role: "listbox", tabindex: 0, "aria-label": "All groups, worst first" });
    this.help = make("div", { class: "help", popover: "manual", role: "tooltip" });
    this.strip = make("div", { class: "strip" }, [this.sentence, this.cells, this.legend]);
    root.append(this.strip, this.help);
    this.legend.addEventListener("click", (event) => this.filtered(event.target.closest("button")));
    this.legend.addEventListener("keydown", (event) => this.walked(event));
    this.cells.addEventListener("pointermove", (event) => this.hovered(event));
    this.cells.addEventListener("pointerleave", () => this.hovered(null));
    this.cells.addEventListener("click", (event) => this.clicked(event));
    this.cells.addEventListener("keydown", (event) => this.pressed(event));
    this.cells.addEventListener("focus", () => this.cells.matches(":focus-visible") && this.stopAt(Math.max(this.at, 0)));
    this.cells.addEventListener("blur", () => this.markAgain());
    new ResizeObserver(() => this.resized()).observe(this.cells);
  }

  draw(data, send) {
    this.data = data;
    this.send = send;
    this.sentence.textContent = data.sentence;
    this.sentence.hidden = !data.sentence;
    this.drawLegend();
    let before = []; // characters: what names share is not counted in UTF-16 units, of which some characters take two
    this.names = data.names.map((written) => {
      before = [...before.slice(0, parseInt(written[0], 36)), ...written.slice(1)];
      return before.join("");
    });
    let first = 0;
    this.blocks = data.blocks.map((block) => {
      const statuses = block.runs.flatMap(([status, cluster, number]) => Array(number).fill([status, cluster]));
      first += statuses.length;
      return { ...block, statuses, first: first - statuses.length };
    });
    if (this.at >= 0) this.findStop();
    const { scrollTop } = this.cells;
    const focused = this.cells.querySelector("a:focus")?.getAttribute("href");
    this.drawBlocks();
    this.layOut();
    this.cells.scrollTop = scrollTop; // new blocks are without height at first
    const links = [...this.cells.querySelectorAll("a")];
    if (focused) links.find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    this.markAgain();
  }

  // Where the group is now that the arrow keys are on. If it is gone, they are on the one in its place.
  findStop() {
    const { name, cluster } = this.stop;
    const place = this.names.findIndex((one, cell) => one === name && this.clusterOf(cell) === cluster);
    this.at = place < 0 ? Math.min(this.at, this.names.length - 1) : place;
    if (this.at >= 0) this.stop = this.groupOf(this.at);
  }

  drawLegend() {
    const { legend, chosen } = this.data;
    const stop = Math.max(0, [...this.legend.children].findIndex((button) => button.tabIndex === 0));
    legend.forEach((entry, i) => {
      const button = this.legend.children[i] ?? this.legend.appendChild(make("button", { type: "button" }));
      const mark = make("span", { class: HOLLOW.has(entry.status) ? "mark hollow" : "mark", "aria-hidden": "true" }, [entry.sign]);
      button.replaceChildren(mark, ` ${entry.word} `, make("b", {}, [entry.count]));
      button.title = entry.meaning;
      button.style.setProperty("--colour", entry.colour);
      button.setAttribute("aria-pressed", chosen.includes(i));
      button.tabIndex = i === Math.min(stop, legend.length - 1) ? 0 : -1;
    });
    while (this.legend.children.length > legend.length) this.legend.lastChild.remove();
  }

  drawBlocks() {
    this.option?.remove(); // it stands among the blocks
    const named = this.blocks.some((block) => block.name);
    this.strip.classList.toggle("few", !named && this.names.length <= FEW);
    this.cells.style.setProperty("--width", `${this.names.length * PITCHES[0]}px`); // of a single row, if they are few
    this.cells.classList.toggle("named", named);
    this.blocks.forEach((block, i) => {
      const element = this.cells.children[i] ?? this.cells.appendChild(make("div", { class: "block" }));
      block.element = element;
      const name = make(block.href ? "a" : "span", { class: "name" }, [block.name]);
      if (block.href) name.setAttribute("href", block.href);
      block.svg = makeSvg("svg", { "aria-hidden": "true" });
      const number = make("span", { class: "number" }, [block.statuses.length.toLocaleString("en")]);
      element.replaceChildren(...(named ? [make("div", { class: "title" }, [name, number])] : []), block.svg);
      name.title = block.name;
    });
    while (this.cells.children.length > this.blocks.length) this.cells.lastChild.remove();
  }

  // Where the cells are: as large as fits, in rows from left to right.

  resized() {
    if (!this.data || this.width === this.cells.clientWidth) return;
    this.layOut();
    this.markAgain();
  }

  layOut() {
    this.width = this.cells.clientWidth;
    if (!this.width) return;
    const places = Math.max(1, Math.floor((this.width + GAP) / (BLOCK_WIDTH + GAP)));
    const usual = Math.max(this.names.length / places, 1);
    for (const { element, statuses } of this.blocks) {
      element.style.gridColumn = `span ${Math.min(Math.max(Math.round(statuses.length / usual), 1), places)}`;
    }
    const widths = this.blocks.map((block) => block.element.clientWidth);
    const height = (pitch) => {
      const lines = new Map(); // the rows of cells of the highest block in each line of blocks
      this.blocks.forEach((block, i) => {
        const rows = Math.ceil(block.statuses.length / Math.floor(widths[i] / pitch));
        const line = block.element.offsetTop;
        lines.set(line, Math.max(rows, lines.get(line) ?? 0));
      });
      return pitch * [...lines.values()].reduce((sum, rows) => sum + rows, 0);
    };
    const pitch = (this.pitch = PITCHES.find((one) => height(one) <= HEIGHT) ?? PITCHES.at(-1));
    const size = pitch - (pitch > 8 ? 3 : 1.5);
    this.blocks.forEach((block, i) => {
      block.columns = Math.max(1, Math.floor(widths[i] / pitch));
      const height = Math.ceil(block.statuses.length / block.columns) * pitch;
      block.svg.setAttribute("height", height);
      const shapes = new Map();
      block.statuses.forEach(([status], cell) => {
        const [x, y] = [(cell % block.columns) * pitch + 0.5, Math.floor(cell / block.columns) * pitch + 0.5];
        shapes.set(status, `${shapes.get(status) ?? ""}M${x} ${y}h${size}v${size}h${-size}z`);
      });
      block.svg.replaceChildren(...[...shapes].map(([status, d]) => this.shape(status, d)));
    });
  }

  shape(status, d) {
    const { legend, chosen } = this.data;
    const path = makeSvg("path", { d });
    path.style.setProperty("--colour", legend[status].colour);
    path.classList.toggle("hollow", HOLLOW.has(legend[status].status));
    path.classList.toggle("left-out", chosen.length > 0 && !chosen.includes(status));
    return path;
  }

  // Which group a cell is.

  blockOf(cell) {
    return this.blocks.findLast((block) => block.first <= cell);
  }

  clusterOf(cell) {
    const block = this.blockOf(cell);
    return this.data.clusters[block.statuses[cell - block.first][1]];
  }

  groupOf(cell) {
    return { name: this.names[cell], cluster: this.clusterOf(cell) };
  }

  href(cell) {
    const block = this.blockOf(cell);
    const link = this.data.links[block.statuses[cell - block.first][1]];
    return `${link}&group=${encodeURIComponent(this.names[cell])}`;
  }

  title(cell) {
    const block = this.blockOf(cell);
    const [status, cluster] = block.statuses[cell - block.first];
    const { legend, clusters, says, visible } = this.data;
    const name = visible[cell] ?? this.names[cell];
    return [
      clusters.length > 1 ? `${name} (${clusters[cluster]})` : name,
      `${legend[status].sign} ${legend[status].word}`,
      says[cell] ?? legend[status].meaning,
    ];
  }

  // The mark of the cell under the pointer, or of the one that the arrow keys are on, with its title beside it. Only
  // the latter is the active one: it is what Enter opens.

  markAgain() {
    if (this.pointer) this.mark(this.cellAt(this.pointer));
    else this.mark(this.cells.matches(":focus-visible") ? this.at : -1);
  }

  mark(cell) {
    this.marked?.remove();
    this.option?.remove();
    this.cells.removeAttribute("aria-activedescendant");
    if (cell < 0 || cell >= this.names.length) return this.help.hidePopover();
    const block = this.blockOf(cell);
    const [column, row] = [(cell - block.first) % block.columns, Math.floor((cell - block.first) / block.columns)];
    const { pitch } = this;
    const box = { x: column * pitch - 0.5, y: row * pitch - 0.5, width: pitch, height: pitch };
    this.marked = block.svg.appendChild(makeSvg("rect", { class: "marked", ...box }));
    if (!this.pointer) this.scrollTo(this.marked);
    const [name, status, sentence] = this.title(cell);
    if (cell === this.at) this.activate(cell, `${name}, ${status}: ${sentence}`);
    this.help.replaceChildren(make("b", {}, [name]), make("div", {}, [status]), sentence);
    showBeside(this.help, this.marked.getBoundingClientRect());
  }

  activate(cell, label) {
    const about = { role: "option", id: `cell-${cell}`, "aria-selected": "true", "aria-label": label };
    this.option = this.cells.appendChild(
      make("span", { ...about, "aria-setsize": this.names.length, "aria-posinset": cell + 1, class: "option" }),
    );
    this.cells.setAttribute("aria-activedescendant", this.option.id);
  }

  // Scrolls the cells and not the page, which a refresh must leave where it is.
  scrollTo(mark) {
    const [at, frame] = [mark.getBoundingClientRect(), this.cells.getBoundingClientRect()];
    this.cells.scrollTop += Math.min(0, at.top - frame.top) + Math.max(0, at.bottom - frame.bottom);
  }

  cellAt({ clientX, clientY }) {
    for (const { svg, columns, statuses, first } of this.blocks) {
      const box = svg.getBoundingClientRect();
      const [column, row] = [clientX - box.left, clientY - box.top].map((pixels) => Math.floor(pixels / this.pitch));
      const cell = row * columns + column;
      if (row >= 0 && column >= 0 && column < columns && cell < statuses.length) return first + cell;
    }
    return -1;
  }

  hovered(event) {
    this.pointer = event && { clientX: event.clientX, clientY: event.clientY };
    this.cells.style.cursor = event && this.cellAt(event) >= 0 ? "pointer" : "";
    this.markAgain();
  }

  clicked(event) {
    const link = event.target.closest("a");
    const cell = this.cellAt(event);
    if (!link && cell < 0) return;
    event.preventDefault();
    follow(link ? link.getAttribute("href") : this.href(cell), event);
  }

  pressed(event) {
    if (event.target !== this.cells || event.altKey || !this.names.length) return; // not on the link of a block
    const cell = Math.min(Math.max(this.at, 0), this.names.length - 1);
    const { columns } = this.blockOf(cell);
    const places = {
      ArrowLeft: cell - 1,
      ArrowRight: cell + 1,
      ArrowUp: cell - columns,
      ArrowDown: cell + columns,
      Home: 0,
      End: this.names.length - 1,
    };
    if (event.key in places) this.stopAt(Math.min(Math.max(places[event.key], 0), this.names.length - 1));
    else if (event.key === "Enter" || event.key === " ") follow(this.href(cell), event);
    else if (event.key === "Escape") this.mark(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  stopAt(cell) {
    if (cell >= this.names.length) return;
    this.at = cell;
    this.stop = this.groupOf(cell);
    this.pointer = null;
    this.cells.scrollIntoView({ block: "nearest" });
    this.mark(cell);
  }

  // The legend: each entry filters by its status. It is one stop of the Tab key, too.

  filtered(button) {
    if (!button) return;
    this.stopAtEntry(button);
    this.send("status", this.data.legend[[...this.legend.children].indexOf(button)].status);
  }

  walked(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const entries = [...this.legend.children];
    const to = entries[entries.indexOf(event.target) + step];
    if (!to) return;
    this.stopAtEntry(to).focus();
    event.preventDefault();
  }

  stopAtEntry(button) {
    for (const one of this.legend.children) one.tabIndex = one === button ? 0 : -1;
    return button;
  }
}

const HOLLOW = new Set(["ok", "ghost"]); // nothing is wrong there: an outline draws less attention
