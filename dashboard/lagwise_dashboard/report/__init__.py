"""The answer to a capacity question, on the page and as a file. Nothing here knows Streamlit: the page draws
it, and ``lagwise size`` writes the same files."""
