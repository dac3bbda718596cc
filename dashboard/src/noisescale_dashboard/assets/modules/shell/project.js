/* One switch of the project for all pages. It stands in the address as project=, and links carry it from page to page. */
import { OWN_PROJECT } from "../address/address.js";
import { skip, triggers } from "./dash.js";
import { carry, leave, projectHere } from "./history.js";
import { closestOf } from "./page.js";

/* What the address of a page of one thing says is no list: another project leads to the list. */
const LIST_OF = { runs: "/runs", sweeps: "/sweeps" };

function listOf(path) {
  const [first, second] = path.split("/").filter(Boolean);
  return second && LIST_OF[first] ? LIST_OF[first] : null;
}

function switched(project) {
  const { pathname, search } = window.location;
  const list = listOf(pathname);
  const query = new URLSearchParams(list ? "" : search);
  query.delete("project");
  /* what is unfolded or planned is another project's */
  ["open", "task", "run", "sel"].forEach((name) => OWN_PROJECT.includes(pathname) && query.delete(name));
  if (project) query.set("project", project);
  const words = query.toString();
  leave((list || pathname) + (words ? "?" + words : ""), project || null);
}

/** The switch shows the project of the address; what is chosen there becomes it. "" stands for all projects. */
export function projectSwitch(search, value) {
  if (
    triggers().includes("project.value") &&
    value !== null &&
    value !== undefined &&
    value !== (projectHere() || "")
  ) {
    switched(value);
    return skip();
  }
  return projectHere() || "";
}

/** A link that is opened in another tab or copied carries the project, too: it is put into it when it is pressed. */
export function watchProjectLinks() {
  document.addEventListener("pointerdown", (event) => {
    const link = closestOf(event, "a[data-go]");
    if (!link) return;
    if (link.getAttribute("href") !== link.dataset.carried) link.dataset.bare = link.getAttribute("href");
    link.dataset.carried = carry(link.dataset.bare);
    link.setAttribute("href", link.dataset.carried);
  });
}
