/* The form for a comment: what it asks for, whose words it changes, and names that it mentions. */
import { setProps, skip, triggers } from "../shell/dash.js";
import { closestOf } from "../shell/page.js";

const SURE_MS = 4000;
let edited = null;

const at = (change) => ({ ...change, at: Date.now() });
const field = () => document.getElementById("run-comment-text");

/** Form for a new comment, or for other words of one. */
function showEdited(id, text) {
  edited = id;
  setProps("run-comment-text", { value: text });
  setProps("run-comment-add", { children: id === null ? "Comment" : "Save" });
  setProps("run-comment-cancel", { hidden: id === null });
}

/** What the button asks for, or a deletion; a second press of an empty field asks for nothing. */
export function commentWanted(clicks, wanted, text) {
  const by = triggers();
  if (by.includes("run-comment-wanted.data")) return wanted || skip();
  const said = (text || "").trim();
  if (!clicks || !said) return skip();
  return edited === null ? at({ do: "add", text: said }) : at({ do: "edit", id: edited, text: said });
}

/** What became of it: what could not be written stays in the field. */
export function commentDone(done) {
  if (!done) return ["", skip()];
  if (!done.is_done) return [done.words, skip()];
  if (done.words === "Deleted.") return [done.words, skip()];
  showEdited(null, "");
  return [done.words, ""];
}

export function commentCancelled(clicks) {
  if (clicks) showEdited(null, "");
  return true;
}

/** The text with a mention where the caret is, a space before and behind it. */
export function withMention(text, caret, name) {
  const before = text.slice(0, caret);
  const gap = before && !/\s$/.test(before) ? " " : "";
  return before + gap + "@" + name + " " + text.slice(caret).replace(/^ /, "");
}

function mention(name) {
  const area = field();
  setProps("run-comment-text", { value: withMention(area.value, area.selectionStart, name) });
  area.focus();
}

/* The first press asks whether it is meant; a second one soon after deletes. */
function remove(button) {
  if (button.dataset.sure) {
    setProps("run-comment-wanted", { data: at({ do: "delete", id: button.dataset.commentDelete }) });
    return;
  }
  const name = button.getAttribute("aria-label");
  button.dataset.sure = "1";
  button.setAttribute("aria-label", name + " for good?");
  window.setTimeout(() => {
    delete button.dataset.sure;
    button.setAttribute("aria-label", name);
  }, SURE_MS);
}

export function watchComments() {
  document.addEventListener("click", (event) => {
    const edit = closestOf(event, "[data-comment-edit]");
    const deleted = closestOf(event, "[data-comment-delete]");
    const name = closestOf(event, "[data-comment-name]");
    if (deleted) remove(deleted);
    if (name) mention(name.dataset.commentName);
    if (!edit) return;
    showEdited(edit.dataset.commentEdit, edit.dataset.commentText);
    field().focus();
  });
}
