"""How pages are served: routes, headers, what callbacks may bring, and what is logged when one fails."""
