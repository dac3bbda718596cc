/* An open <details class="details"> closes on Escape and when something else is clicked. */
(function () {
  const opened = () => Array.from(document.querySelectorAll("details.details[open]"));

  document.addEventListener("click", (event) => {
    opened().filter((details) => !details.contains(event.target)).forEach((details) => details.removeAttribute("open"));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    opened().forEach((details) => {
      details.removeAttribute("open");
      details.querySelector("summary").focus();
    });
  });
})();
