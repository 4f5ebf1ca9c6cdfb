#!/usr/bin/env python3
"""A job in Python: counts the lines, words and bytes of its payload.

    weir work -q texts -- examples/exec/count.py
"""
import json
import os
import sys

control = os.fdopen(int(os.environ["WEIR_CONTROL_FD"]), "w", buffering=1)


def say(line):
    print(line, file=control)


text = sys.stdin.buffer.read()
if not text:
    say("permanent there is nothing to count")
    sys.exit(65)
if text.split(b"\n", 1)[0] == b"later" and os.environ["WEIR_ATTEMPT"] == "1":
    say("snooze 60 the text is not ready")
    sys.exit(75)
say("progress 1/2 counting")
print(f"attempt {os.environ['WEIR_ATTEMPT']} of {os.environ['WEIR_MAX_ATTEMPTS']}",
      file=sys.stderr)
counts = {"lines": text.count(b"\n"), "words": len(text.split()), "bytes": len(text)}
say("progress 2/2 done")
print(json.dumps(counts, separators=(",", ":")))
