"""The page to try a network on, and the network inside it: static files for any web host, or one piece of HTML."""
