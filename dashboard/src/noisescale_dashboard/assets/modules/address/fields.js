/* Fields of an address: how the word of each is read, and what it is when the address leaves it out. */

/** The number that a word says; null where it says none. */
export const numberOf = (word) => (word && Number.isFinite(Number(word)) ? Number(word) : null);

export const text = (usual = null) => ({ usual, read: (word) => word || usual });
export const choice = (known, usual = known[0]) => ({
  usual,
  read: (word) => (known.includes(word) ? word : usual),
});
export const number = () => ({ usual: null, read: numberOf });
/** A number between 0 and 1. */
export const share = (usual) => ({
  usual,
  read: (word) => (numberOf(word) === null ? usual : Math.min(1, Math.max(0, numberOf(word)))),
});
/** A number that stays a text, written as the address writes it. */
export const numeral = () => ({ usual: null, read: (word) => (numberOf(word) === null ? null : word) });
/** True or false: 1 or 0 in the address. */
export const onOff = (usual) => ({ usual, read: (word) => (word === null ? usual : word === "1") });
/** 1 where it is said, null else. */
export const flag = () => ({ usual: null, read: (word) => (word === "1" ? 1 : null) });

/**
 * The query part of a page's address, in both directions.
 *
 * `usual` is the view of an address that says nothing, `read` the view of one, `said` the address of a view: what is as
 * usual stays out of it. The fields stand in the order in which they are given. `settled` mends views whose fields do
 * not go together.
 */
export function address(fields, settled = (view) => view) {
  const all = Object.entries(fields);
  const usual = Object.fromEntries(all.map(([name, field]) => [name, field.usual]));

  function read(search) {
    const query = new URLSearchParams(search || "");
    return settled(Object.fromEntries(all.map(([name, field]) => [name, field.read(query.get(name))])));
  }

  function said(view) {
    const query = new URLSearchParams();
    all.forEach(([name]) => {
      const value = view[name];
      if (value === null || value === undefined || value === "" || value === usual[name]) return;
      query.set(name, typeof value === "boolean" ? Number(value) : value);
    });
    return query.toString();
  }

  return { usual, read, said };
}
