"""The demo: the four jobs of the article on the local stack, with local processes as training scripts."""
