"""Result lines of other load tools, set beside our own measurements and never among them."""
