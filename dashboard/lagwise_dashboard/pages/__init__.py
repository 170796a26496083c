"""The pages, a folder each: the module of its name draws it, those beside it are its own."""
