"""The application: the command line, and what runs, serves and demonstrates the product. Every room lies below it."""
