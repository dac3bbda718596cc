"""Everything that `make test` tries with two ranks, for one start of them."""

import gloo_behaviour
import gloo_readers
import gloo_two_ranks

SCENARIOS = {**gloo_two_ranks.SCENARIOS, **gloo_behaviour.SCENARIOS, **gloo_readers.SCENARIOS}
