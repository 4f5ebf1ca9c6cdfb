#!/usr/bin/env bats
# How far a job is: said by commands and co-processes, shown by job show and job wait.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    PATH=$(dirname "$(realpath "$WEIR")"):$PATH
}
teardown() { [ -z "${worker:-}" ] || kill "$worker" 2>/dev/null || true; }

# A worker whose job says how far it is, one file at a time: the test makes them.
start_worker() {
    timeout 60 "$WEIR" work -q default -c 2 -- sh -c '
        weir progress 1/4 --stage "up load" first file; until [ -e a ]; do sleep 0.02; done
        echo "progress 80 stage=check nearly" >&3; until [ -e b ]; do sleep 0.02; done' 2>work.log 3>&- &
    worker=$!
}

show() { "$WEIR" job show j --json | jq -c "[.progress_percent, .progress_stage, .progress_message]"; }
shows() { [ "$(show)" = "$1" ]; }

@test "job show has percent, stage and message while it runs and as long as the job is kept" {
    "$WEIR" enqueue t --id j
    start_worker
    until_true shows '[25,"up load","1/4 first file"]'
    touch a
    until_true shows '[80,"check","nearly"]'
    [[ "$("$WEIR" job show j)" == *$'progress\t80 stage=check nearly'* ]]
    touch b
    "$WEIR" job wait j --timeout 10s
    [ "$(show)" = '[80,"check","nearly"]' ]
}

@test "job wait --progress=json tells each step on stderr, and the end on stdout" {
    "$WEIR" enqueue t --id j
    start_worker
    "$WEIR" job wait j --timeout 20s --progress=json 2>steps >ends &
    wait=$!
    until_true grep -q '"stage":"up load"' steps
    touch a
    until_true grep -q '"percent":80,"stage":"check","message":"nearly"' steps
    touch b
    wait $wait
    [ "$(cat ends)" = $'j\tdone' ]
    [ "$(jq -r .id steps | sort -u)" = j ]
    [ "$(sort steps | uniq -d)" = '' ]
}

@test "job wait: none and no terminal are silent, another form is refused" {
    "$WEIR" enqueue t --id j
    start_worker
    touch a b
    "$WEIR" job wait j --timeout 20s --progress=none 2>steps
    [ ! -s steps ]
    "$WEIR" job wait j --timeout 20s 2>steps
    [ ! -s steps ]
    exits 64 "$WEIR" job wait j --progress=loud
}

# on_terminal COMMAND...: runs it with a terminal as stderr, whose bytes go to screen.
on_terminal() {
    python3 -c '
import os, pty, subprocess, sys
master, slave = pty.openpty()
p = subprocess.Popen(sys.argv[1:], stderr=slave, stdout=open("ends", "w"))
os.close(slave)
with open("screen", "wb", buffering=0) as out:
    while True:
        try:
            got = os.read(master, 4096)
        except OSError:
            break
        if not got:
            break
        out.write(got)
sys.exit(p.wait())' "$@"
}

@test "job wait draws a bar on a terminal and wipes it at the end" {
    command -v python3 >/dev/null || skip "needs python3"
    "$WEIR" enqueue t --id j
    start_worker
    on_terminal "$WEIR" job wait j --timeout 20s &
    wait=$!
    until_true grep -q '\[#######\.*\]  25%  up load: 1/4 first file' screen
    touch a
    until_true grep -q '\[########################......\]  80%  check: nearly' screen
    touch b
    wait $wait
    [ "$(cat ends)" = $'j\tdone' ]
    [ "$(tail -c 4 screen | bytes)" = 0d1b5b4b ]
}

@test "job wait of several jobs says on a terminal how many have ended" {
    command -v python3 >/dev/null || skip "needs python3"
    "$WEIR" enqueue t --id j
    "$WEIR" enqueue t --id later --in 1h
    "$WEIR" job cancel later
    "$WEIR" enqueue t --id k --in 1h
    start_worker
    on_terminal "$WEIR" job wait j k --timeout 20s &
    wait=$!
    until_true grep -q '  0%  0 of 2 jobs ended' screen
    touch a b
    until_true grep -q ' 50%  1 of 2 jobs ended' screen
    "$WEIR" job run k
    wait $wait
    [ "$(cat ends)" = $'j\tdone\nk\tdone' ]
}

# A worker whose jobs say three times in a moment how far they are, and are done.
start_quick_worker() {
    timeout 60 "$WEIR" work -q default -c 2 -- sh -c '
        for n in 10 40 100; do weir progress $n --stage "up load" part $n; done' 2>work.log 3>&- &
    worker=$!
}

over() { "$WEIR" job show "$1" --json | jq -ce 'select(.state == "done")'; }

@test "what a job said last is read after its end, however fast it was" {
    start_quick_worker
    "$WEIR" enqueue t --id j
    "$WEIR" job wait j --timeout 20s
    [ "$(show)" = '[100,"up load","part 100"]' ]
}

@test "enqueue --keep-progress: the last progress outlives a job that is not kept" {
    start_quick_worker
    "$WEIR" enqueue t --id j --keep-result 0 --keep-progress 1h
    until_true over j
    [ "$(over j | jq -c keys)" = '["finished_at","id","progress","progress_message","progress_percent","progress_stage","queue","state"]' ]
    [ "$(show)" = '[100,"up load","part 100"]' ]
    [ "$("$WEIR" job show j -o id)" = j ]
    "$WEIR" job show j | grep -q $'^state\tdone$'
    "$WEIR" job show j | grep -q $'^progress\t100 stage=up%20load part 100$'
    "$WEIR" job show j -o table | grep -q 'done, and not kept'
    exits 1 "$WEIR" job wait j --timeout 1s # the job itself is gone
    exits 1 "$WEIR" job show j -q elsewhere
    exits 1 "$WEIR" job show nobody
    says E_NO_JOB
    "$WEIR" audit
}

@test "--keep-progress shorter than --keep-result, or 0: the kept job is without it" {
    start_quick_worker
    "$WEIR" enqueue t --id j --keep-progress 0
    "$WEIR" enqueue t --id k --keep-progress 1s
    "$WEIR" job wait j k --timeout 20s
    [ "$(show)" = '[null,null,null]' ]
    [ "$("$WEIR" job show k --json | jq .keep_progress_ms)" = 1000 ]
    until_true eval '[ "$("$WEIR" job show k --json | jq -c "[.state,.progress]")" = "[\"done\",null]" ]'
}

@test "queue set --keep-progress holds for jobs that do not say it; the sweep takes what is over" {
    "$WEIR" queue create default
    "$WEIR" queue show default | grep -vq keep_progress
    "$WEIR" queue set default --keep-progress 50ms
    [ "$("$WEIR" queue show default --json | jq .keep_progress_ms)" = 50 ]
    start_quick_worker
    "$WEIR" enqueue t --id j --keep-result 0
    echo '{"type":"t","id":"k","keep_result":"0s","keep_progress":"1h"}' | "$WEIR" enqueue --from -
    until_true over k
    until_true [ "$(redis EXISTS "$WEIR_NAMESPACE:{default}:state")" = 0 ]
    until_true eval '[ "$(redis HKEYS "$WEIR_NAMESPACE:{default}:progress")" = k ]'
    [ "$(redis TTL "$WEIR_NAMESPACE:{default}:progress")" = -1 ]
    exits 64 "$WEIR" queue set default --keep-progress soon
    "$WEIR" audit --deep
}

@test "a co-process says how far its job is, and that outlives the job" {
    cat >./talk <<'END'
#!/bin/sh
read -r hello
echo '{"hello":"weir-coproc","version":1}'
while read -r job; do
    call=$(echo "$job" | sed 's/.*"call": *\([0-9]*\).*/\1/')
    echo "{\"call\":$call,\"progress\":30,\"stage\":\"cut\",\"text\":\"one\"}"
    echo "{\"call\":$call,\"progress\":90,\"stage\":\"glue\",\"text\":\"two\"}"
    echo "{\"call\":$call,\"answer\":\"ok\"}"
done
END
    chmod +x talk
    timeout 60 "$WEIR" work -q default -c 1 --coproc t=./talk 2>work.log 3>&- &
    worker=$!
    "$WEIR" enqueue t --id j --keep-result 0 --keep-progress 1h
    until_true over j
    [ "$(show)" = '[90,"glue","two"]' ]
}
