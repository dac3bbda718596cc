/* The form with what people say of a run: it shows what is stored, but never overwrites what somebody is writing. */
(function () {
  const skip = () => window.dash_clientside.no_update;
  const form = () => document.getElementById("run-edit");

  function remarksShown(said, ...values) {
    const fields = ["name", "tags", "remarks"];
    if (!said) return fields.map(skip);
    /* a form that was opened before there was anything to show has no name yet: what is empty is filled */
    if (form() && form().open) return fields.map((field, i) => (values[0] || (values[i] && values[i].length) ? skip() : said[field]));
    return fields.map((field, i) => (JSON.stringify(values[i]) === JSON.stringify(said[field]) ? skip() : said[field]));
  }

  function remarksSaved(change) {
    if (!change) return ["", true];
    if (form() && !change.words.startsWith("Nothing")) form().removeAttribute("open");
    return [change.words, !change.undo];
  }

  Object.assign(window.dash_clientside.noisescale, { remarksShown, remarksSaved });
})();
