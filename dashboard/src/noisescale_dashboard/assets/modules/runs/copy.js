/* "Copy" in the list of runs that are to change: the server writes the text for the chosen trainer, the browser copies it. */
import { setProps } from "../shell/dash.js";
import { closestOf } from "../shell/page.js";

export function watchCopies() {
  document.addEventListener("click", (event) => {
    const button = closestOf(event, "[data-copy-run]");
    if (button) setProps("runs-copy-asked", { data: { id: button.dataset.copyRun, at: Date.now() } });
  });
}
