/* What is on the page, and small things that any part of it does. */
import { setProps } from "./dash.js";

/** The element around the target of an event that fits the selector; null where the target is none. */
export const closestOf = (event, selector) => (event.target.closest ? event.target.closest(selector) : null);

/** An element with a class and a text. */
export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A dialog that is named by its title and gone once it is closed; `showModal` is left to the caller. */
export function dialogOf(className, id, title) {
  const dialog = element("dialog", className);
  const head = element("h2", "tt", title);
  head.id = id;
  dialog.setAttribute("aria-labelledby", id);
  dialog.append(head);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.appendChild(dialog);
  return dialog;
}

export function closeButton(dialog) {
  const close = element("button", "btn", "Close");
  close.addEventListener("click", () => dialog.close());
  return close;
}

const opened = () => Array.from(document.querySelectorAll("details.details[open]"));
export const closeDetails = () => opened().forEach((details) => details.removeAttribute("open"));

/** An open <details class="details"> closes on Escape and when something else is clicked. */
export function watchDetails() {
  document.addEventListener("click", (event) => {
    opened()
      .filter((details) => !details.contains(event.target))
      .forEach((details) => details.removeAttribute("open"));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    opened().forEach((details) => {
      details.removeAttribute("open");
      details.querySelector("summary").focus();
    });
  });
}

/** A button that turns a switch of the page on, such as "Show them". */
export function watchSwitches() {
  document.addEventListener("click", (event) => {
    const button = closestOf(event, "[data-checks]");
    if (button) setProps(button.dataset.checks, { checked: true });
  });
}

/** What its box cuts behind an ellipsis, a chosen value among it, says all of itself to the pointer. */
export function tellWhatIsCut() {
  document.addEventListener("mouseover", ({ target }) => {
    if (!(target instanceof Element) || target.closest("[title]:not([data-cut])")) return;
    const isField = target.matches("input[type=text], input:not([type])");
    if (!isField && getComputedStyle(target).textOverflow !== "ellipsis") return;
    if (target.scrollWidth <= target.clientWidth) target.removeAttribute("title");
    else {
      target.dataset.cut = "";
      target.title = isField ? target.value || target.placeholder : target.textContent;
    }
  });
}
