#!/usr/bin/env python3
"""A co-process for `weir work`: one Python that runs job after job.

    weir work --coproc 'shout=python3 coproc.py'

The part above the line is all there is to the protocol (docs/coproc-protocol.md); copy it.
"""
import base64
import json
import os
import sys


class Later(Exception):
    """Not now: again in `seconds`, which does not count as a failure."""

    def __init__(self, why="", seconds=None):
        super().__init__(why)
        self.seconds = seconds


class Never(Exception):
    """This job can never work: dead at once."""


class Job:
    def __init__(self, fields, write):
        self.__dict__.update(fields)  # id, type, queue, attempt, max_attempts, timeout_ms ...
        self.meta = fields.get("meta", {})
        text = fields.get("payload_base64")
        self.payload = base64.b64decode(text) if text else fields.get("payload", "").encode()
        self._write = write

    def progress(self, percent, text=""):
        self._write({"call": self.call, "progress": percent, "text": text})


def serve(handler):
    """Calls handler(job) for each job; what it returns (None, bytes, str, or anything that
    is JSON) is the result, what it raises is the failure."""
    lines = sys.stdin.buffer
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a print() in somebody's library must not break the protocol

    def write(fields):
        out.write(json.dumps(fields).encode() + b"\n")
        out.flush()

    for line in lines:
        fields = json.loads(line)
        if "hello" in fields:
            write({"hello": "weir-coproc", "version": 1})
            continue
        answer = {"call": fields["call"], "answer": "ok"}
        try:
            result = handler(Job(fields, write))
            if isinstance(result, (bytes, bytearray)):
                answer["result_base64"] = base64.b64encode(result).decode()
            elif result is not None:
                answer["result"] = result
        except Later as e:
            answer.update(answer="snooze", error=str(e))
            if e.seconds is not None:
                answer["delay_ms"] = int(e.seconds * 1000)
        except Never as e:
            answer.update(answer="permanent", error=str(e))
        except Exception as e:
            answer.update(answer="retry", error=f"{type(e).__name__}: {e}")
        write(answer)


# ---------------------------------------------------------------------------------------


def shout(job):
    if not job.payload:
        raise Never("nothing to shout")
    job.progress(50, "breathing in")
    return job.payload.upper()


if __name__ == "__main__":
    serve(shout)
