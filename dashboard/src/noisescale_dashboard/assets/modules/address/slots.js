/* Which of the colours a run has where runs are compared. */

/** How many colours there are. */
export const SLOTS = 5;

const slotOf = (id) => Array.from(id).reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 1000003, 7) % SLOTS;

/** A slot for each run: what it had, else that of its id, else the next free one; none is left for the sixth. */
export function slotsOf(runs, had) {
  const taken = runs.map((id) => (had[id] === undefined ? null : had[id]));
  return runs.map((id, place) => {
    if (taken[place] !== null) return taken[place];
    for (let step = 0; step < SLOTS; step += 1) {
      const slot = (slotOf(id) + step) % SLOTS;
      if (!taken.includes(slot)) return (taken[place] = slot);
    }
    return null;
  });
}

/** The slots that an address names, as far as each is one and stands there once. */
export function namedSlots(runs, word) {
  const given = (word || "").split("");
  const had = {};
  runs.forEach((id, place) => {
    const slot = Number(given[place]);
    if (given[place] === undefined || given[place] === "-" || !Number.isInteger(slot) || slot >= SLOTS) return;
    if (!Object.values(had).includes(slot)) had[id] = slot;
  });
  return had;
}
