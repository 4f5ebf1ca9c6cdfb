"""A co-process that does what its payload says, good and bad. Used by coproc.bats."""
import json
import os
import signal
import subprocess
import sys
import time

starts = os.environ.get("STARTS")
if starts:
    with open(starts, "a") as f:
        f.write(f"{os.getpid()}\n")
mode = sys.argv[1] if len(sys.argv) > 1 else ""
if mode == "no-start":
    print("ModuleNotFoundError: No module named 'shoes'", file=sys.stderr)
    sys.exit(1)
if mode == "no-start-once" and not os.path.exists(os.environ["FLAG"]):
    open(os.environ["FLAG"], "w").close()
    sys.exit(1)


def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(job, **more):
    say(json.dumps({"call": job["call"], "answer": "ok", **more}) + "\n")


for line in sys.stdin:
    job = json.loads(line)
    if "hello" in job:
        if mode == "version":
            say('{"hello":"weir-coproc","version":9}\n')
        elif mode == "early":
            say('{"call":1,"answer":"ok"}\n')
        else:
            if mode == "banner":
                print("Welcome to the framework 3.0", flush=True)
            say('{"hello":"weir-coproc","version":1}\n')
        continue
    what = job["payload"]
    if what == "pid":
        answer(job, result=str(os.getpid()))
    elif what == "job":
        answer(job, result=job)
    elif what == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "exit":
        print("Traceback: it went wrong", file=sys.stderr)
        sys.exit(3)
    elif what == "answer-and-exit":
        answer(job, result="last words")
        sys.exit(0)
    elif what == "last":
        answer(job, result=str(os.getpid()), last=True)
        sys.exit(0)
    elif what == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", os.environ["SLEEP"]])
        time.sleep(1000)
    elif what == "garbage":
        say('{"call":1,"answer":\n')
    elif what == "no-call":
        say('{"answer":"ok"}\n')
    elif what == "no-word":
        say(json.dumps({"call": job["call"], "answer": "maybe"}) + "\n")
    elif what == "other-call":
        say(json.dumps({"call": job["call"] + 5, "answer": "ok"}) + "\n")
    elif what == "twice":
        answer(job, result="one")
        answer(job, result="two")
    elif what == "late":
        say(json.dumps({"call": job["call"] - 1, "answer": "permanent"}) + "\n")
        answer(job, result="now")
    elif what == "no-newline":
        say(json.dumps({"call": job["call"], "answer": "ok"}))
        sys.exit(0)
    elif what == "oversize":
        say('{"call":' + "7" * 1000000)
        time.sleep(1000)
    elif what == "close":
        os.close(1)
        time.sleep(1000)
    elif what == "noise":
        print("debug: I print\nand print", flush=True)
        print("warning: on stderr", file=sys.stderr, flush=True)
        answer(job, result="ok")
    elif what == "flood":
        sys.stderr.write("x" * 3000000 + "\n")
        for _ in range(3000):
            print("y" * 1000)
        answer(job, result="ok")
    elif what == "big":
        answer(job, result="z" * 70000)
    elif what == "full":
        answer(job, result="\x01" * 65536)
    elif what == "bytes":
        answer(job, result_base64="AP8KDQ==")
    elif what == "snooze":
        say(json.dumps({"call": job["call"], "answer": "snooze", "error": "busy", "delay_ms": 3600000}) + "\n")
    elif what == "never":
        say(json.dumps({"call": job["call"], "answer": "permanent", "error": "no such thing"}) + "\n")
    elif what == "retry":
        say(json.dumps({"call": job["call"], "answer": "retry", "error": "broke", "delay_ms": 7200000.0}) + "\n")
    elif what == "progress":
        say(json.dumps({"call": job["call"], "progress": 33.3, "text": "a third"}) + "\n")
        say('{"log":"a line for the log"}\n{"unknown":[1,2]}\n')
        while not os.path.exists(os.environ["FLAG"]):
            time.sleep(0.02)
        answer(job)
    elif what == "wait":
        while not os.path.exists(os.environ["FLAG"]):
            time.sleep(0.02)
        answer(job, result="waited")
    else:
        answer(job, result=what)
