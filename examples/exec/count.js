#!/usr/bin/env node
// A job in JavaScript: counts the lines, words and bytes of its payload.
//   weir work -q texts -- examples/exec/count.js
"use strict";
const fs = require("fs");

const say = (line) => fs.writeSync(Number(process.env.WEIR_CONTROL_FD), line + "\n");
const { WEIR_ATTEMPT: attempt, WEIR_MAX_ATTEMPTS: most } = process.env;

// Large payloads come in pieces: wait for the end, never for one event.
const pieces = [];
process.stdin.on("data", (piece) => pieces.push(piece));
process.stdin.on("end", () => {
  const bytes = Buffer.concat(pieces);
  const text = bytes.toString();
  if (bytes.length === 0) {
    say("permanent there is nothing to count");
    process.exitCode = 65;
    return;
  }
  if (text.split("\n")[0] === "later" && attempt === "1") {
    say("snooze 60 the text is not ready");
    process.exitCode = 75;
    return;
  }
  say("progress 1/2 counting");
  console.error(`attempt ${attempt} of ${most}`); // its log
  const lines = text.split("\n").length - 1;
  const words = text.split(/\s+/).filter((word) => word !== "").length;
  say("progress 2/2 done");
  // exitCode, not exit(): what is written must be out before the end.
  console.log(JSON.stringify({ lines, words, bytes: bytes.length })); // the result
});
