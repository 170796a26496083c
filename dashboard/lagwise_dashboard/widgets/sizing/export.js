const saved = new Set(); // files that were handed over: buttons that are drawn again have the same data
const KINDS = [
  ["csv", "Figures as CSV", "text/csv"],
  ["html", "Report as HTML", "text/html"],
];

export default function ({ data, parentElement, setTriggerValue }) {
  for (const [kind, label] of KINDS) {
    let button = parentElement.querySelector(`[name=${kind}]`);
    if (!button) {
      button = make("button", { type: "button", name: kind }, [label]);
      parentElement.append(button);
    }
    button.disabled = !data.can_be_clicked;
    button.onclick = () => setTriggerValue("asked", { kind, id: crypto.getRandomValues(new Uint32Array(1))[0] });
  }
  if (data.file && !saved.has(data.file.id)) {
    saved.add(data.file.id);
    save(data.file.name, data.file.text, KINDS.find(([kind]) => kind === data.file.kind)[2]);
  }
}
