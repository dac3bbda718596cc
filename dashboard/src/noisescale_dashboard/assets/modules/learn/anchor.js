/* The page is drawn after the browser has looked for the anchor in the address. */
import { skip } from "../shell/dash.js";

export function goToAnchor(hash) {
  const found = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  document.querySelectorAll(".asked").forEach((one) => one.classList.remove("asked"));
  if (found) {
    found.classList.add("asked");
    found.scrollIntoView({ block: "start" });
  }
  return skip();
}
