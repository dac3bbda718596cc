// A login that has ended is renewed on the page of the server, and the reader comes back to this one.
(() => {
  const fetched = window.fetch;
  window.fetch = async (...asked) => {
    const answer = await fetched(...asked);
    if (answer.status === 401 && String(asked[0]?.url ?? asked[0]).includes("/_dash-update-component")) {
      const here = location.pathname + location.search;
      location.assign(`/login?next=${encodeURIComponent(here)}`);
    }
    return answer;
  };
})();
