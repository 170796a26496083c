// Finds anything by a part of its name: a button that stands on every page, and a dialog with a field and what was found.
// The field keeps the focus; arrow keys walk what was found, Enter opens it (WAI-ARIA's combobox with a list of groups).

const finders = new WeakMap(); // by the element that a finder is mounted in
const TYPING_MS = 80; // so long nothing is typed before it is looked for
const LOST_MS = 3000; // an answer that takes longer is asked for again: a run of the page may have lost the question

export default function ({ data, parentElement, setTriggerValue }) {
  if (!finders.has(parentElement)) finders.set(parentElement, new Finder(parentElement));
  return finders.get(parentElement).draw(data, setTriggerValue);
}

class Finder {
  constructor(root) {
    this.answer = null; // what was found, and for which text
    this.opensFirst = false; // Enter was pressed before the answer came
    const keys = make("kbd", { "aria-hidden": "true" }, ["/"]);
    this.button = make(
      "button",
      {
        class: "opener",
        type: "button",
        "aria-label": "Find",
        "aria-haspopup": "dialog",
        "aria-keyshortcuts": "/ Control+K Meta+K",
        title: `Find a group, topic, partition, member, host, page or saved view by a part of its name (press / or ${SHORTCUT})`,
      },
      [lens(), make("span", { class: "word" }, ["Find"]), keys],
    );
    this.input = make("input", {
      type: "text",
      role: "combobox",
      "aria-label": "Find by a part of the name",
      "aria-autocomplete": "list",
      "aria-controls": "hits",
      "aria-expanded": "false",
      placeholder: "Group, topic, partition (orders-7), member, host, page, view",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      enterkeyhint: "go",
      maxlength: 500,
    });
    this.close = make("button", { class: "close", type: "button", "aria-label": "Close" }, ["Esc"]);
    this.hits = make("div", { class: "hits", id: "hits", role: "listbox", "aria-label": "Found" });
    this.state = make("p", { class: "state", role: "status" });
    const help = make("p", { class: "keys", "aria-hidden": "true" }, [`↑ ↓ choose · Enter opens · ${CONTROL}+Enter in a new tab`]);
    this.dialog = make("dialog", { "aria-label": "Find" }, [
      make("div", { class: "field" }, [lens(), this.input, this.close]),
      this.hits,
      make("div", { class: "foot" }, [this.state, help]),
    ]);
    root.append(this.button, this.dialog);
    this.button.addEventListener("click", () => this.open());
    this.close.addEventListener("click", () => this.dialog.close());
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
    this.hits.addEventListener("click", (event) => this.clicked(event));
    this.hits.addEventListener("pointermove", (event) => this.activate(event.target.closest("a")));
    // The field keeps the focus, whatever is pressed by the pointer.
    this.hits.addEventListener("mousedown", (event) => event.preventDefault());
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.closed());
    // What is pressed here is no shortcut of the page's.
    this.dialog.addEventListener("keydown", (event) => event.stopPropagation());
    this.shortcut = (event) => this.pressedOnPage(event);
  }

  draw(data, send) {
    this.send = send;
    addEventListener("keydown", this.shortcut);
    if (data && this.dialog.open && data.text === this.text()) this.answered(data);
    return () => removeEventListener("keydown", this.shortcut);
  }

  text() {
    return this.input.value.trim();
  }

  pressedOnPage(event) {
    const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    const command = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (!(slash || command) || event.defaultPrevented || isTyping(event) || isCovered()) return;
    event.preventDefault();
    this.open();
  }

  open() {
    if (this.dialog.open) return;
    this.input.value = "";
    this.show({ text: null, kinds: [] });
    this.dialog.showModal();
    this.input.focus();
    this.ask();
  }

  closed() {
    clearTimeout(this.typing);
    clearTimeout(this.lost);
    this.show({ text: null, kinds: [] });
  }

  typed() {
    clearTimeout(this.typing);
    this.opensFirst = false;
    this.typing = setTimeout(() => this.ask(), TYPING_MS);
  }

  ask() {
    clearTimeout(this.lost);
    this.lost = setTimeout(() => this.ask(), LOST_MS);
    this.send("question", { text: this.text() });
  }

  answered(data) {
    clearTimeout(this.lost);
    this.show(data);
    if (this.opensFirst && this.active) this.follow(this.active, {});
    this.opensFirst = false;
  }

  // What was found, kind by kind. The one that was chosen stays it, if it is still there.

  show(answer) {
    const before = answer.text === this.answer?.text ? this.active?.getAttribute("href") : null;
    this.answer = answer;
    this.hits.replaceChildren(...answer.kinds.map((kind, i) => section(kind, i)));
    this.hits.scrollTop = 0;
    this.links = [...this.hits.querySelectorAll("a")];
    this.links.forEach((link, i) => (link.id = `hit-${i}`));
    this.input.setAttribute("aria-expanded", this.links.length > 0);
    this.activate(this.links.find((link) => link.getAttribute("href") === before) ?? this.links[0]);
    this.state.textContent = answer.says ?? "";
  }

  activate(link) {
    if (link === null) return; // the pointer is between two
    this.active?.setAttribute("aria-selected", "false");
    this.active = link;
    if (!link) return this.input.removeAttribute("aria-activedescendant");
    link.setAttribute("aria-selected", "true");
    this.input.setAttribute("aria-activedescendant", link.id);
  }

  pressed(event) {
    if (event.isComposing || event.altKey) return;
    const at = this.links.indexOf(this.active);
    const last = this.links.length - 1;
    const places = { ArrowDown: at < last ? at + 1 : 0, ArrowUp: at > 0 ? at - 1 : last, PageDown: last, PageUp: 0 };
    if (event.key in places) {
      this.activate(this.links[places[event.key]]);
      this.active?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      if (this.answer.text !== this.text()) this.opensFirst = true;
      else if (this.active) this.follow(this.active, event);
    } else return;
    event.preventDefault();
  }

  clicked(event) {
    const link = event.target.closest("a");
    if (!link || event.shiftKey) return; // a new window: the browser's
    event.preventDefault();
    this.follow(link, event);
  }

  follow(link, event) {
    const href = link.getAttribute("href");
    if (!event.ctrlKey && !event.metaKey) this.dialog.close();
    follow(href, event);
  }
}

const IS_APPLE = /Mac|iP(hone|ad|od)/.test(navigator.platform);
const CONTROL = IS_APPLE ? "Cmd" : "Ctrl";
const SHORTCUT = `${CONTROL}+K`;

// Whether a key is meant for a field: what has the focus may lie inside a component.
function isTyping(event) {
  const target = event.composedPath()[0];
  return target instanceof Element && (target.isContentEditable || target.matches("input, textarea, select"));
}

// Whether a dialog of the page lies above it: that one holds the focus.
function isCovered() {
  return document.querySelector('[role="dialog"][aria-modal="true"], [data-testid="stDialog"]') !== null;
}

function section({ title, counted, hits }, place) {
  const heading = make("div", { class: "kind", id: `kind-${place}`, role: "presentation" }, [
    make("b", {}, [title]),
    ...(counted ? [make("span", {}, [counted])] : []),
  ]);
  return make("div", { role: "group", "aria-labelledby": heading.id }, [heading, ...hits.map(option)]);
}

function option({ href, name, about, sign, word, colour }) {
  const mark = make("span", { class: "mark", title: word ?? "", "aria-hidden": "true" }, [sign ?? ""]);
  if (colour) mark.style.setProperty("--colour", colour);
  else mark.classList.add("none");
  return make(
    "a",
    { href, role: "option", tabindex: -1, "aria-selected": "false", "aria-label": [name, word, about].filter(Boolean).join(", ") },
    [mark, make("span", { class: "name", title: name }, [name]), make("span", { class: "about" }, [about])],
  );
}

function lens() {
  const svg = makeSvg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
  svg.append(makeSvg("circle", { cx: 7, cy: 7, r: 4.5 }), makeSvg("path", { d: "M10.5 10.5 14 14" }));
  return svg;
}
