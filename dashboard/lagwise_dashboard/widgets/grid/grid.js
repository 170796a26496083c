// A table of text: rows are printed whole, found by the browser's search, and read aloud. Columns sort by value.
// It is one stop of the Tab key: arrow keys walk its cells, Enter sorts by a heading or opens a row.

const tables = new WeakMap(); // by the element that a table is mounted in
const saved = new Set(); // files that were handed over: a table that is drawn again has the same data

export default function ({ data, parentElement, setTriggerValue }) {
  if (!tables.has(parentElement)) tables.set(parentElement, new Table(parentElement));
  tables.get(parentElement).draw(data, setTriggerValue);
}

class Table {
  constructor(root) {
    this.root = root;
    this.sorted = null; // {title, descending}, where rows are sorted here
    this.chosen = null; // the title of the heading that was clicked last, where the server sorts
    this.place = [0, 0]; // row (0 is the heading) and column of the cell that the Tab key stops at
    this.rows = new Map(); // by key
    this.head = make("tr");
    this.body = make("tbody");
    this.table = make("table", { role: "grid" }, [make("thead", {}, [this.head]), this.body]);
    this.frame = make("div", { class: "frame" }, [this.table]);
    this.download = make("button", { class: "download", type: "button" }, ["CSV"]);
    this.help = make("div", { class: "help", popover: "manual", role: "tooltip", id: "help" });
    root.append(this.frame, make("div", { class: "below" }, [this.download]), this.help);
    this.download.addEventListener("click", () => this.send("export", crypto.getRandomValues(new Uint32Array(1))[0]));
    this.table.addEventListener("click", (event) => this.clicked(event));
    this.table.addEventListener("keydown", (event) => this.pressed(event));
    this.table.addEventListener("copy", (event) => this.copied(event));
    this.table.addEventListener("focusin", (event) => this.focused(event));
    this.table.addEventListener("focusout", () => this.explain(null));
    this.head.addEventListener("pointerover", (event) => this.explain(event.target.closest("th")));
    this.head.addEventListener("pointerleave", () => this.explain(null));
  }

  draw(data, send) {
    this.data = data;
    this.send = send;
    const hadFocus = Boolean(this.root.activeElement?.closest("th, td"));
    this.frame.style.setProperty("--rows", data.visible_rows);
    this.frame.classList.toggle("high", data.columns.some((column) => column.wraps));
    this.frame.classList.toggle("with-axis", data.columns.some((column) => column.axis.length));
    this.table.setAttribute("aria-label", data.label);
    this.download.setAttribute("aria-label", `CSV: ${data.label}`);
    const stop = this.cell(...this.place);
    this.drawHead();
    this.drawBody();
    // The focus follows its row to where that has moved: Enter opens what it was on.
    const cell = this.stopAt(...(stop?.isConnected ? this.placeOf(stop) : this.place));
    if (hadFocus && this.root.activeElement !== cell) cell.focus({ preventScroll: true });
    if (data.file && !saved.has(data.file.id)) {
      saved.add(data.file.id);
      save(data.file.name, data.file.text, "text/csv");
    }
  }

  drawHead() {
    const cells = this.data.columns.map((column, i) => {
      const th = this.head.cells[i] ?? make("th", { scope: "col", tabindex: -1 });
      const direction = this.direction(column);
      fill(th, [column.title, direction], () => [column.title, make("span", { class: "arrow", "aria-hidden": "true" }, [ARROWS[direction]]), ...axis(column)]);
      th.className = column.kind + (this.sortable(column) ? " sortable" : "");
      th.style.setProperty("--width", column.width ? `${column.width}px` : "");
      direction ? th.setAttribute("aria-sort", direction) : th.removeAttribute("aria-sort");
      column.help ? th.setAttribute("aria-describedby", "help") : th.removeAttribute("aria-describedby");
      return th;
    });
    this.head.replaceChildren(...(same(cells, this.head.cells) ? this.head.cells : cells));
  }

  drawBody() {
    const { columns } = this.data;
    const keys = rowKeys(this.data);
    const rows = this.inOrder().map((row) => {
      const tr = this.rows.get(keys[row]) ?? make("tr");
      this.rows.set(keys[row], tr);
      tr.classList.toggle("opens", Boolean(this.data.links?.[row]));
      while (tr.cells.length > columns.length) tr.lastChild.remove();
      columns.forEach((column, i) => {
        const td = tr.cells[i] ?? tr.appendChild(make("td", { tabindex: -1 }));
        const shown = column.cells[row];
        const href = column.links ? this.data.links[row] : null;
        td.className = column.kind + (column.wraps ? " wraps" : "") + (empty(shown) ? " unknown" : "");
        td.style.setProperty("--width", column.width ? `${column.width}px` : "");
        td.title = tooltip(column, shown);
        fill(td, [column.kind, shown, href], () => contents(column, shown, href));
      });
      return tr;
    });
    const known = new Set(keys);
    for (const key of this.rows.keys()) if (!known.has(key)) this.rows.delete(key);
    if (!same(rows, this.body.rows)) this.body.replaceChildren(...rows);
  }

  // Sorting: by the server where it says so, which may have more rows than are here.

  sortable(column) {
    return this.data.orders ? column.title in this.data.orders : !["trend", "span"].includes(column.kind);
  }

  direction(column) {
    if (this.data.orders) return this.sortedBy() === column.title ? this.data.direction : "";
    if (this.sorted?.title !== column.title) return "";
    return this.sorted.descending ? "descending" : "ascending";
  }

  // Of the headings that ask the server for the order in force, the one that was clicked, or else the first.
  sortedBy() {
    const { columns, orders, ordered_by } = this.data;
    const titles = columns.map((column) => column.title).filter((title) => orders[title] === ordered_by);
    return titles.includes(this.chosen) ? this.chosen : titles[0];
  }

  inOrder() {
    const rows = Array.from({ length: this.data.rows }, (_, row) => row);
    const column = this.data.columns.find((one) => one.title === this.sorted?.title);
    if (!column || this.data.orders) return rows;
    const values = column.order ?? column.cells;
    const sign = this.sorted.descending ? -1 : 1;
    return rows.sort((a, b) => {
      if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null) || a - b;
      return sign * (column.order ? values[a] - values[b] : collator.compare(values[a], values[b])) || a - b;
    });
  }

  sort(column) {
    if (!this.sortable(column)) return;
    if (this.data.orders) {
      this.chosen = column.title;
      return this.send("sort", column.title);
    }
    const first = ["number", "share", "bullet"].includes(column.kind); // the largest is what is looked for
    if (this.sorted?.title !== column.title) this.sorted = { title: column.title, descending: first };
    else this.sorted = this.sorted.descending === first ? { title: column.title, descending: !first } : null;
    this.draw(this.data, this.send);
  }

  // Clicks and keys

  clicked(event) {
    const cell = event.target.closest("th, td");
    if (!cell) return;
    this.stopAt(...this.placeOf(cell));
    if (cell.tagName === "TH") return this.sort(this.data.columns[cell.cellIndex]);
    const isLink = event.target.closest("a");
    if (isLink && (event.ctrlKey || event.metaKey || event.shiftKey)) return; // a new tab or window: the browser's
    if (isLink) event.preventDefault();
    if (isLink || !getSelection().toString()) this.open(cell.parentElement, event);
  }

  open(tr, event) {
    const href = tr.querySelector("a")?.getAttribute("href");
    if (!href) return;
    follow(href, event);
  }

  pressed(event) {
    const cell = event.target.closest("th, td");
    const [row, column] = this.placeOf(cell);
    const last = [this.body.rows.length, this.head.cells.length - 1];
    const page = Math.max(1, Math.floor(this.frame.clientHeight / cell.offsetHeight) - 1);
    const whole = event.ctrlKey || event.metaKey;
    const places = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [whole ? 0 : row, 0],
      End: [whole ? last[0] : row, last[1]],
      PageUp: [row - page, column],
      PageDown: [row + page, column],
    };
    if (event.altKey) return;
    if (places[event.key]) {
      const [to, at] = places[event.key].map((n, i) => Math.min(Math.max(n, 0), last[i]));
      this.stopAt(to, at).focus();
    } else if (event.key === "Enter" || event.key === " ") {
      if (row === 0) this.sort(this.data.columns[column]);
      else this.open(cell.parentElement, event);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  copied(event) {
    if (getSelection().toString()) return;
    event.clipboardData.setData("text/plain", event.target.closest("th, td").innerText.trim());
    event.preventDefault();
  }

  focused(event) {
    const cell = event.target.closest("th, td");
    this.stopAt(...this.placeOf(cell));
    this.explain(cell.tagName === "TH" && cell.matches(":focus-visible") ? cell : null);
  }

  explain(th) {
    const text = th && this.data.columns[th.cellIndex].help;
    if (!text) return this.help.hidePopover();
    this.help.textContent = text;
    showBeside(this.help, th.getBoundingClientRect());
  }

  cell(row, column) {
    return (row ? this.body.rows[row - 1] : this.head)?.cells[column];
  }

  placeOf(cell) {
    return [cell.tagName === "TH" ? 0 : cell.parentElement.sectionRowIndex + 1, cell.cellIndex];
  }

  stopAt(row, column) {
    this.table.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    this.place = [Math.min(row, this.body.rows.length), Math.min(column, this.head.cells.length - 1)];
    const cell = this.cell(...this.place);
    cell.setAttribute("tabindex", "0");
    return cell;
  }
}

const WIDEST = 340; // pixels of a text that is not told how wide it may be; as in the styles
const LETTER = 9; // pixels: texts of fewer letters than their column has room for are never cut
const DAY_BEFORE_TIME = /^(\d{4}-\d\d-\d\d) (?=\d\d:)/; // as moments of other days are written
const ARROWS = { ascending: "▲", descending: "▼", "": "" };
const collator = new Intl.Collator("en", { numeric: true });

function contents(column, shown, href) {
  if (empty(shown)) return ["—"];
  if (column.kind === "badges") return shown.map((label) => badge(label, column.colours[label]));
  if (column.kind === "trend") return [chart(shown)];
  if (column.kind === "span") return [bar(shown, column.axis)];
  if (column.kind === "bullet") return [bullet(shown, column)];
  if (column.kind === "share") return [make("span", { class: "bar", style: `--share: ${shown.replace(" ", "")}` }), shown];
  // Paper breaks the line after the day.
  if (column.kind === "number") shown = shown.replace(DAY_BEFORE_TIME, "$1\n");
  if (column.wraps) return [make("div", { class: "lines", style: `--lines: ${column.wraps}` }, [shown])];
  return [href ? make("a", { href, tabindex: -1 }, [shown]) : shown];
}

function badge(label, colour) {
  return colour
    ? make("span", { class: "badge", style: `background: ${colour}` }, [label])
    : make("span", { class: "word" }, [label]);
}

// What a row is known by from one refresh to the next: where it leads, and its place among those that do.
function rowKeys({ rows, links }) {
  const seen = new Map();
  return Array.from({ length: rows }, (_, row) => {
    const key = links ? links[row] : row;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return `${key}#${seen.get(key)}`;
  });
}

// Each point is a digit from 0 to z, on the row's own scale.
function chart(digits) {
  const step = 80 / Math.max(1, digits.length - 1);
  const line = [...digits].map((digit, i) => `${(i * step).toFixed(1)},${(19 - (18 * parseInt(digit, 36)) / 35).toFixed(1)}`).join(" ");
  const svg = makeSvg("svg", { viewBox: "0 0 80 20", "aria-hidden": "true" });
  svg.append(makeSvg("polygon", { points: `0,20 ${line} 80,20` }), makeSvg("polyline", { points: line }));
  return svg;
}

// A span on the axis that all rows share; what is a moment is as wide as can be seen.
const SPAN_WIDTH = 220; // pixels; as in the styles
function bar([low, high, text], ticks) {
  const svg = makeSvg("svg", { viewBox: `0 0 ${SPAN_WIDTH} 20`, role: "img", "aria-label": text });
  for (const [place] of ticks) svg.append(makeSvg("line", { x1: place * SPAN_WIDTH, x2: place * SPAN_WIDTH, y1: 0, y2: 20 }));
  const width = Math.max(5, (high - low) * SPAN_WIDTH);
  const x = Math.min(low * SPAN_WIDTH, SPAN_WIDTH - width);
  svg.append(makeSvg("rect", { x, width, y: 5, height: 10, rx: 2 }));
  return svg;
}

// A bar up to a line that stands for the limit in every row, the place where it will be, and how far the limit is known.
const BULLET_WIDTH = 240; // pixels; as in the styles
function bullet([label, value, outline, mark, markHigh, limitHigh, text], { axis, colours }) {
  const svg = makeSvg("svg", { viewBox: `0 0 ${BULLET_WIDTH} 20`, role: "img", "aria-label": text });
  const x = (place) => Math.min(place, 1) * BULLET_WIDTH;
  const draw = (tag, attributes) => svg.append(makeSvg(tag, attributes));
  const across = (from, to, y, height, of) => draw("rect", { class: of, x: x(from), width: x(to) - x(from), y, height });
  const limit = axis.at(-2)[0]; // the last label is the end of the axis
  across(limit, limitHigh ?? 1, 2, 16, limitHigh === null ? "open" : "band");
  for (const [place] of axis) draw("line", { x1: x(place), x2: x(place), y1: 0, y2: 20 });
  draw("line", { class: "limit", x1: x(limit), x2: x(limit), y1: 0, y2: 20 });
  if (outline !== null) across(value, Math.max(value, outline), 6.5, 7, "outline");
  svg.style.setProperty("--colour", colours[label] ?? "");
  across(0, value, 6, 8, "value");
  if (Math.max(value, outline ?? 0) > 1) draw("path", { class: "beyond", d: `M${BULLET_WIDTH - 7} 4l6 6l-6 6` });
  if (mark === null) return svg;
  const [at, end] = [mark > 1 ? BULLET_WIDTH - 12 : Math.min(x(mark), BULLET_WIDTH - 5), x(markHigh ?? mark)];
  if (end > at) draw("path", { class: "whisker", d: `M${at} 10H${end}${(markHigh ?? mark) > 1 ? "m-4 -4l4 4l-4 4" : "M" + end + " 6v8"}` });
  draw("path", { class: "mark", d: `M${at} 5l5 5l-5 5l-5 -5z` });
  return svg;
}

function axis(column) {
  if (!column.axis.length) return [];
  const labels = column.axis.map(([place, label], i) =>
    make("span", { class: i === 0 ? "first" : i === column.axis.length - 1 ? "last" : "", style: `left: ${place * 100}%` }, [label]),
  );
  return [make("div", { class: "axis", "aria-hidden": "true" }, labels)];
}

// The whole of what a cell may show a part of, or shows as a drawing.
function tooltip({ kind, width }, shown) {
  if (kind === "bullet" || kind === "span") return shown?.at(-1) ?? "";
  return kind === "text" && shown?.length * LETTER > (width ?? WIDEST) ? shown : "";
}

function empty(shown) {
  return shown === null || shown.length === 0;
}

// Cells that stay as they are are left alone: a selection of text and a click that has begun survive a refresh.
function fill(cell, signature, made) {
  const written = JSON.stringify(signature);
  if (cell.written === written) return;
  cell.written = written;
  cell.replaceChildren(...made());
}

function same(made, there) {
  return made.length === there.length && made.every((element, i) => element === there[i]);
}
