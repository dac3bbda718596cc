/* What changed on a live page, said to screen readers: at most once a minute, and nothing that was there at first. */
(function () {
  const skip = () => window.dash_clientside.no_update;
  const EVERY = 60000;

  function announce(sentence, last) {
    if (!sentence) return [skip(), skip()];
    if (!last) return ["", { at: Date.now(), said: sentence }];
    if (sentence === last.said || Date.now() - last.at < EVERY) return [skip(), skip()];
    return [sentence, { at: Date.now(), said: sentence }];
  }

  Object.assign(window.dash_clientside.noisescale, { announce });
})();
