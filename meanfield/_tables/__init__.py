"""Tables as the papers print them."""
