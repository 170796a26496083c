"""How the pages are served: Streamlit's server, its options, and the entry script."""
