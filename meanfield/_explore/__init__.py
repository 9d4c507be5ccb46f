"""The explorer: policies as one page for a browser, which computes by itself."""
