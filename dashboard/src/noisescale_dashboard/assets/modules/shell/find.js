/* A run is found from any page: the list of those whose name has these letters, whenever they sent data. */
import { RUNS } from "../address/address.js";
import { skip } from "./dash.js";
import { go } from "./history.js";

export function findRun(submitted, letters) {
  /* Enter may come before Dash has heard of the last letter */
  const field = document.getElementById("find");
  const wanted = ((field && field.value) || letters || "").trim();
  if (!submitted || !wanted) return skip();
  /* the project of the switch is carried along */
  go("/runs?" + RUNS.said({ ...RUNS.usual, q: wanted, since: "any" }));
  return "";
}
