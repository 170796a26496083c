"""The pages, a folder each: `page.py` draws it, the modules beside it are its own."""
