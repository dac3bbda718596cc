/* A login that has ended is renewed on the page of the server, and the reader comes back to this one. */

export function renewLogin(response) {
  if (response.status !== 401) return;
  const here = window.location.pathname + window.location.search;
  window.location.assign("/login?next=" + encodeURIComponent(here));
}
