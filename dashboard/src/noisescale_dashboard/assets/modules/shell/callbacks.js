/* The requests of Dash's callbacks, which all go through window.fetch: how many are under way, and what comes of each. */

const CALLBACK = "_dash-update-component";
const BEAT = '{"output":"beat-answer.data"';
let pending = 0;

/** Callbacks that wait for their answer: news are not asked for on top of them. */
export const numPending = () => pending;

const addressOf = (resource) => (typeof resource === "string" ? resource : (resource && resource.url) || "");

/** Tell of every callback's answer: `answered(response, isBeat)`, or `failed(error, isBeat)` where none came. */
export function watchCallbacks({ answered, failed }) {
  const ask = window.fetch;
  window.fetch = function fetchAndTell(resource, options) {
    const answer = ask.apply(this, arguments);
    if (!addressOf(resource).includes(CALLBACK)) return answer;
    const isBeat = Boolean(options && typeof options.body === "string" && options.body.startsWith(BEAT));
    const settle = () => {
      if (!isBeat) pending -= 1;
    };
    if (!isBeat) pending += 1;
    answer.then(settle, settle);
    answer.then(
      (response) => answered(response, isBeat),
      (error) => failed(error, isBeat),
    );
    return answer;
  };
}
