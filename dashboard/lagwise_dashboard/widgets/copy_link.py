"""A button that copies the address of what is on the screen: whoever opens it sees the same."""

import streamlit as st

_CSS = """
button {
  padding: 0.2rem 0.6rem;
  border: 1px solid var(--st-border-color);
  border-radius: var(--st-button-radius);
  background: transparent;
  color: var(--st-text-color);
  font: inherit;
  font-size: 13px;
  white-space: nowrap;
  cursor: pointer;
}
button:hover { border-color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
"""
# Browsers offer their clipboard to pages that were served by HTTPS or from this machine. Elsewhere a selected text is
# copied as in the old days.
_JS = """
const SHOWN_MS = 2000;
const copyWithSelection = (text) => {
    const field = document.createElement("textarea");
    field.value = text;
    field.setAttribute("style", "position: fixed");
    document.body.append(field);
    field.select();
    try {
        return document.execCommand("copy");
    } finally {
        field.remove();
    }
};
export default ({ parentElement }) => {
    const button = parentElement.querySelector("button");
    button.onclick = async () => {
        let copied = true;
        try {
            await navigator.clipboard.writeText(location.href);
        } catch {
            copied = copyWithSelection(location.href);
        }
        button.textContent = copied ? "Copied" : "Not copied: the browser refused";
        setTimeout(() => { button.textContent = "Copy link"; }, SHOWN_MS);
    };
};
"""
_COMPONENT = st.components.v2.component(
    "lagwise_copy_link", html='<button type="button">Copy link</button>', css=_CSS, js=_JS
)


def show() -> None:
    """Draw the button."""
    _COMPONENT(key="copy_link", width="content", height="content")
