/* The form for comments: what it asks for, and what stays in it. */
import assert from "node:assert/strict";
import test from "node:test";

import { changed, put, SKIP } from "./support/page.mjs";

const { commentCancelled, commentDone, commentWanted, withMention } =
  await import("../../../dashboard/src/noisescale_dashboard/assets/modules/run/comments.js");
const isSkipped = (value) => value === SKIP;

test("a text is asked to be added, and an empty field asks for nothing", () => {
  const wanted = changed(["run-comment-add.n_clicks"], commentWanted, 1, null, " too large ");

  assert.deepEqual([wanted.do, wanted.text], ["add", "too large"]);
  assert.ok(isSkipped(changed(["run-comment-add.n_clicks"], commentWanted, 1, null, "  ")));
  assert.ok(isSkipped(changed([], commentWanted, null, null, null)));
});

test("a deletion is passed on as it is", () => {
  const asked = { do: "delete", id: "1", at: 2 };

  assert.deepEqual(changed(["run-comment-wanted.data"], commentWanted, 1, asked, "half a comment"), asked);
});

test("what could not be written stays in the field, and a deletion leaves what is being written", () => {
  assert.deepEqual(commentDone({ words: "Added.", is_done: true }), ["Added.", ""]);
  for (const done of [
    { words: "Nothing was changed.", is_done: false },
    { words: "Deleted.", is_done: true },
  ]) {
    const [words, text] = changed([], commentDone, done);
    assert.equal(words, done.words);
    assert.ok(isSkipped(text));
  }
});

test("the form is that of a new comment again when it is cancelled", () => {
  put.length = 0;

  assert.equal(commentCancelled(1), true);
  assert.deepEqual(put[0], ["run-comment-text", { value: "" }]);
});

test("a name is put where the caret is", () => {
  assert.equal(withMention("", 0, "Ada"), "@Ada ");
  assert.equal(withMention("see", 3, "Ada"), "see @Ada ");
  assert.equal(withMention("see  there", 4, "Ada Lovelace"), "see @Ada Lovelace there");
});
