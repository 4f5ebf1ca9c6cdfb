#!/usr/bin/env bats
# weir explain: what it says of the scripts is what the scripts do.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
}

@test "the list names every transition once an engine, and needs no server" {
    export WEIR_URL=unix:///nowhere
    "$WEIR" explain --json >all
    [ "$(jq -r '.engine + "/" + .transition' all | sort | uniq -d)" = '' ]
    for t in enqueue offer withdraw reserve exchange ack retry bury release extend promote reclaim cancel; do
        for e in list stream; do
            jq -se --arg t "$t" --arg e "$e" 'any(.transition == $t and .engine == $e)' all >/dev/null
        done
    done
    [ "$("$WEIR" explain --engine list --json | jq -r .engine | sort -u | tr '\n' ' ')" = 'common list ' ]
    [ "$("$WEIR" explain -o id | head -1)" = "$("$WEIR" explain | head -1 | cut -f 1)" ]
}

@test "a transition: its keys of a queue, what reads and what writes them, whom it wakes" {
    [ "$("$WEIR" explain enqueue --engine list -q mail | grep -c "^$WEIR_NAMESPACE:{mail}:")" = \
        "$("$WEIR" explain enqueue --engine list --json | jq '.keys | length')" ]
    "$WEIR" explain ack --engine list --namespace n -q mail --json >ack
    [ "$(jq -c '.moves' ack)" = '[{"from":"processing","to":"done"}]' ]
    [ "$(jq -c '.keys[] | select(.name == "processing") | [.key, .type, .writes]' ack)" = \
        '["n:{mail}:processing","ZSET",["ZREM"]]' ]
    [[ "$(jq -r '.wakes[].whom' ack)" == *"weir job wait"* ]]
    [[ "$("$WEIR" explain enqueue --json | jq -r '.wakes[].whom')" == *"one worker"* ]]
    "$WEIR" explain enqueue call --json |
        jq -se 'all(any(.moves[]; . == {from: "none", to: "processing"}))' >/dev/null
    [ "$("$WEIR" explain hint --json | jq -r '.keys[0].key')" = "$WEIR_NAMESPACE:worker:WORKER:hint" ]
}

@test "every key of every contract is seen in a command" {
    "$WEIR" explain --json >all
    # ids: some declare it for what they share with others, which looks at nothing then
    [ "$(jq -r '. as $s | .keys[] | select(.reads + .writes == [] and .name != "ids") |
        $s.transition + " " + .name' all)" = '' ]
}

@test "mistakes" {
    exits 64 "$WEIR" explain akc
    says 'did you mean "ack"?'
    exits 64 "$WEIR" explain ack --engine tape
    says 'list or stream'
    exits 64 "$WEIR" explain ack -q '{'
    exits 64 "$WEIR" explain ''
    exits 64 "$WEIR" explain foo
    [[ $output != *'did you mean'* ]]
}

# The commands of scripts that MONITOR saw, as "SHA COMMAND KEY...", against what explain
# says of the script with this SHA.
unexplained() {
    "$WEIR" explain --json | jq -r '.sha1 as $sha |
        ((.keys[] | .name as $name | (.reads + .writes)[] | [$sha, ., $name]),
         (.without_key[] | [$sha, ., "-"])) | @tsv' >explained
    python3 - "$1" explained <<'PY'
import re, sys
seen, told = open(sys.argv[1]).read().splitlines(), set()
for line in open(sys.argv[2]):
    told.add(tuple(line.rstrip("\n").split("\t")))
NOKEY = {"TIME", "INFO", "PUBLISH"}
sha, calls, bad = None, 0, set()
for line in seen:
    where, words = re.search(r"\[\d+ ([^\]]*)\] (.*)$", line).groups() if "] \"" in line else (None, "")
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', words)
    if not words:
        continue
    if where != "lua":
        sha = words[1] if words[0].upper().startswith("EVALSHA") else None
        if sha is None and words[0].upper() == "EVAL":
            sha = "eval"
        continue
    if sha in (None, "eval"):
        continue
    name = words[0].upper()
    keys = [] if name in NOKEY else words[1:] if name in ("EXISTS", "UNLINK") else words[1:2]
    if name in ("XGROUP", "XINFO"):
        keys = words[2:3]
    if name == "XREADGROUP":
        keys = [words[[w.upper() for w in words].index("STREAMS") + 1]]
    for key in keys or ["-"]:
        key = re.sub(r"^[^:]*:(\{[^}]*\}:)?", "", key)  # namespace and queue
        if key.startswith("worker:"):
            key = "hint" if key.endswith(":hint") else "worker"
        calls += 1
        if (sha, name, key.replace(":", "_")) not in told:
            bad.add((sha, name, key))
for b in sorted(bad):
    print("not told:", *b)
print("calls", calls)
PY
}

# To the worker, if that waits already.
one_is_handed_over() {
    "$WEIR" enqueue t 'x' --wait >/dev/null
    grep -q ' handed' monitor
}

# Most transitions of a queue of this engine, watched.
compare_with_monitor() {
    command -v python3 >/dev/null || skip "needs python3"
    export WEIR_ENGINE=$1
    other_engine default
    redis MONITOR >monitor 3>&- &
    monitor=$!
    until_true grep -q OK monitor
    "$WEIR" enqueue t 'x' --id plain --unique k --keep-result 1h
    "$WEIR" enqueue t 'x' --id late --in 50ms --then next
    "$WEIR" enqueue fails 'x' --id fails --retry 1 --backoff fixed:10ms
    "$WEIR" enqueue t 'x' --id gone --in 1h
    "$WEIR" enqueue t 'y' --id gone --in 2h --replace
    "$WEIR" job cancel gone
    "$WEIR" cron add tick 'every 1h' t
    "$WEIR" cron run tick
    "$WEIR" queue pause default
    "$WEIR" queue resume default
    timeout 60 "$WEIR" work --exec 't=echo out' --exec 'fails=false' --exec 'next=sh -c "weir progress 5 half; cat"' 2>/dev/null 3>&- &
    worker=$!
    "$WEIR" job wait plain --timeout 10s
    until_true eval '[ "$("$WEIR" audit --json | jq -c "[.dead, .ready, .processing, .delayed]")" = "[1,0,0,0]" ]'
    "$WEIR" dead retry fails
    until_true eval '[ "$("$WEIR" audit --json | jq -c "[.dead, .deliveries]")" = "[1,8]" ]'
    "$WEIR" job show plain >/dev/null
    "$WEIR" job logs plain >/dev/null
    "$WEIR" dead purge fails --yes
    until_true one_is_handed_over
    [ "$("$WEIR" audit --json | jq -r .engine)" = "$1" ]
    "$WEIR" audit --deep >/dev/null
    kill "$worker"
    wait "$worker" || true
    kill "$monitor"
    run unexplained monitor
    echo "$output"
    [[ "$output" != *"not told"* ]]
    [ "$(sed -n 's/calls //p' <<<"$output")" -gt 200 ]
}

@test "what MONITOR shows of the scripts of a list is what explain says of them" {
    compare_with_monitor list
}

@test "what MONITOR shows of the scripts of a stream is what explain says of them" {
    compare_with_monitor stream
}
