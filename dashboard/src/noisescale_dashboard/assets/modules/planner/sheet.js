/* The planner's limits as a sheet from below, on a phone. */
import { closestOf } from "../shell/page.js";

const sheet = () => document.getElementById("planner-sheet");

function turn(isOpen) {
  const panel = sheet();
  const opener = document.querySelector('[data-planner-sheet="open"]');
  if (!panel) return;
  panel.classList.toggle("open", isOpen);
  if (opener) opener.setAttribute("aria-expanded", String(isOpen));
  const first = isOpen ? panel.querySelector("input, button") : opener;
  if (first && first.offsetParent) first.focus({ preventScroll: true });
}

export function watchSheet() {
  document.addEventListener("click", (event) => {
    const button = closestOf(event, "[data-planner-sheet]");
    if (button) turn(button.dataset.plannerSheet === "open");
    if (closestOf(event, "[data-planner-print]")) window.print();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && sheet() && sheet().classList.contains("open")) turn(false);
  });
}
