// What cannot be read: text that is too faint for what lies below it, and signs that belong to the source of a text.
() => {
  const ENOUGH = 4.5; // of contrast, WCAG 2.2, 1.4.3
  const ESCAPED = /\\[!-\/:-@\[-`{-~]/;
  const faint = new Set();
  const escaped = new Set();

  const parsed = (colour) => {
    const numbers = colour.match(/[\d.]+/g).map(Number);
    const scale = colour.startsWith("color(srgb") ? 255 : 1; // what was mixed comes as shares of one
    return [...numbers.slice(0, 3).map((number) => number * scale), numbers[3] ?? 1];
  };
  const over = (above, below) => below.slice(0, 3).map((b, i) => above[i] * above[3] + b * (1 - above[3])).concat(1);
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => (v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (...colours) => {
    const [dark, light] = colours.map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const parent = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;
  const upwards = function* (element) {
    for (let e = element; e; e = parent(e)) yield e;
  };
  const below = (element) => {
    const layers = [];
    for (const e of upwards(element)) {
      const layer = parsed(getComputedStyle(e).backgroundColor);
      if (layer[3]) layers.unshift(layer);
      if (layer[3] === 1) break;
    }
    return layers.reduce((page, layer) => over(layer, page), [255, 255, 255, 1]);
  };
  const judge = (element, text, style, colour, opacity) => {
    const ground = below(element);
    for (const e of upwards(element)) opacity *= getComputedStyle(e).opacity;
    const ink = parsed(colour);
    const found = contrast(over([...ink.slice(0, 3), ink[3] * opacity], ground), ground);
    if (found < ENOUGH) faint.add(`${found.toFixed(2)} : 1, ${style.fontSize}, ${text.slice(0, 60)}`);
  };
  const ofText = (element, text) => {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || !element.checkVisibility({ visibilityProperty: true })) return;
    if (element.closest(":disabled, [aria-disabled=true]")) return;
    const isDrawn = element instanceof SVGElement;
    if (isDrawn && style.fill === "rgb(255, 255, 255)") return; // it lies on a bar, not on the page
    judge(element, text, style, isDrawn ? style.fill : style.color, isDrawn ? Number(style.fillOpacity) : 1);
  };
  const walk = (root) => {
    const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
      if (node instanceof Text) {
        const text = node.data.trim();
        if (!text || ["STYLE", "SCRIPT", "NOSCRIPT"].includes(node.parentElement.tagName)) continue;
        if (ESCAPED.test(text)) escaped.add(text);
        ofText(node.parentElement, text);
        continue;
      }
      if (node.shadowRoot) walk(node.shadowRoot);
      for (const name of ["aria-label", "title", "placeholder", "alt", "value"]) {
        if (ESCAPED.test(node.getAttribute(name) ?? "")) escaped.add(`${name}: ${node.getAttribute(name)}`);
      }
      if (node.placeholder && !node.value && node.checkVisibility()) {
        const style = getComputedStyle(node, "::placeholder");
        judge(node, node.placeholder, style, style.color, Number(style.opacity));
      }
    }
  };
  walk(document);
  if (ESCAPED.test(document.title)) escaped.add(document.title);
  return { faint: [...faint], escaped: [...escaped] };
}
