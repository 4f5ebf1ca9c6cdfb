#!/usr/bin/env bats
# What a command says to its worker from inside a job: one line on the control pipe, or
# one datagram.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    unset WEIR_CONTROL_FD WEIR_CONTROL_SOCKET WEIR_TMPDIR WEIR_IDEMPOTENCY_KEY
    use_server main
}

# lines COMMAND...: runs it with a control pipe and prints what came out of it.
lines() {
    { WEIR_CONTROL_FD=7 "$@" 7>&1 >/dev/null; } | cat
}

# listen COUNT: a datagram socket ./s that takes so many datagrams into ./got.
listen() {
    python3 - "$1" 3>&- <<'PY' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("s")
s.settimeout(20)
with open("got", "wb") as f:
    for i in range(int(sys.argv[1])):
        f.write(s.recv(65536))
PY
    listener=$!
    until_true [ -S s ]
}

@test "each wrapper writes its one line, and needs no server" {
    export WEIR_URL=unix:///nowhere
    [ "$(lines "$WEIR" progress 40 resizing now)" = 'progress 40 resizing now' ]
    [ "$(lines "$WEIR" progress 3/12)" = 'progress 3/12' ]
    [ "$(lines "$WEIR" progress 7%)" = 'progress 7%' ]
    [ "$(lines "$WEIR" progress 3/12 --stage 'up load' a file)" = 'progress 3/12 stage=up%20load a file' ]
    [ "$(lines "$WEIR" note 'got  it' all)" = 'note got  it all' ]
    [ "$(lines "$WEIR" heartbeat)" = heartbeat ]
    [ "$(lines "$WEIR" extend 5m)" = 'extend 5m' ]
    [ "$(lines "$WEIR" snooze 60 upstream down)" = 'snooze 60 upstream down' ]
    [ "$(lines "$WEIR" fail no such customer)" = 'permanent no such customer' ]
    [ "$(lines "$WEIR" fail)" = permanent ]
    [ "$(lines "$WEIR" fail --in 2m disk full)" = 'retry 120000ms disk full' ]
}

@test "they print nothing and end with 0" {
    exits 0 env WEIR_CONTROL_FD=7 "$WEIR" note x 7> >(cat >/dev/null)
    [ -z "$output" ]
}

@test "a text of several lines stays one line, and what is too long is cut between characters" {
    [ "$(lines "$WEIR" note $'a\nb\r\nc')" = 'note a b  c' ]
    long=$(printf 'ä%.0s' $(seq 3000))
    lines "$WEIR" note "$long" >got
    [ "$(wc -l <got)" = 1 ]
    [ "$(wc -c <got)" -le 4096 ]
    [ "$(wc -c <got)" -ge 4094 ]
    iconv -f utf-8 -t utf-8 got >/dev/null
}

@test "a result is told by the whole path of its file" {
    echo hello >'my file'
    ln -s 'my file' link
    [ "$(lines "$WEIR" result link)" = "result-file $PWD/my file" ]
    exits 74 env WEIR_CONTROL_FD=7 "$WEIR" result nothing 7> >(cat >/dev/null)
    says nothing
    touch $'a\nb'
    exits 64 env WEIR_CONTROL_FD=7 "$WEIR" result $'a\nb' 7> >(cat >/dev/null)
}

@test "standard input as result is kept in the job's folder" {
    mkdir job
    head -c 200000 /dev/urandom >bytes
    WEIR_TMPDIR=$PWD/job lines "$WEIR" result - <bytes >got
    file=$(sed 's/^result-file //' got)
    [ "$(dirname "$file")" = "$PWD/job" ]
    cmp bytes "$file"
    exits 64 env WEIR_CONTROL_FD=7 "$WEIR" result - 7> >(cat >/dev/null) </dev/null
    says WEIR_TMPDIR
    exits 74 env WEIR_CONTROL_FD=7 WEIR_TMPDIR=/no/where "$WEIR" result - 7> >(cat >/dev/null)
}

@test "where the pipe is closed the socket gets the line" {
    listen 2
    WEIR_CONTROL_FD=7 WEIR_CONTROL_SOCKET=$PWD/s "$WEIR" note one 7>&-
    WEIR_CONTROL_SOCKET=$PWD/s "$WEIR" progress 5
    wait "$listener"
    [ "$(cat got)" = $'note one\nprogress 5' ]
}

@test "a descriptor that has become something else is not written to" {
    exits 64 env WEIR_CONTROL_FD=7 "$WEIR" note x 7>file
    says "no control pipe"
    [ ! -s file ]
    exits 64 env WEIR_CONTROL_FD=7 "$WEIR" note x 7<file
    exits 64 env WEIR_CONTROL_FD=999999999999 "$WEIR" note x
    exits 64 env WEIR_CONTROL_FD=-1 "$WEIR" note x
}

@test "outside a job: one clear line and exit 64" {
    for words in 'progress 1' 'note x' heartbeat 'extend 1m' 'snooze 1m' fail 'result x' 'result -' token; do
        # shellcheck disable=SC2086
        exits 64 "$WEIR" $words
        says 'only inside a job'
        [ "${#lines[@]}" = 1 ]
    done
}

@test "a worker that is gone: exit 74" {
    mkfifo pipe
    exits 74 bash -c 'exec 7<>pipe 8>pipe 7>&-; WEIR_CONTROL_FD=8 "$0" note x' "$WEIR"
    exits 74 env WEIR_CONTROL_SOCKET=/no/such/socket "$WEIR" note x
    exits 64 env "WEIR_CONTROL_SOCKET=/$(printf 'x%.0s' $(seq 200))" "$WEIR" note x
}

@test "values that make no sense: exit 64, nothing is sent" {
    for words in 'progress 101' 'progress x' 'progress 5/0' 'progress 5/4' 'progress -1' \
        'extend soon' 'extend' 'snooze why' 'fail --in x' 'note' 'heartbeat now' 'result'; do
        # shellcheck disable=SC2086
        exits 64 env WEIR_CONTROL_FD=7 "$WEIR" $words 7> >(cat >"sent")
        [ ! -s sent ]
    done
}

@test "the token is the job's idempotency key" {
    [ "$(WEIR_IDEMPOTENCY_KEY=abc:12 "$WEIR" token)" = abc:12 ]
}

# ---- with a worker ----

# in_job ID SCRIPT: enqueues a job and runs it once by a shell.
in_job() {
    PATH=$(dirname "$(realpath "$WEIR")"):$PATH
    "$WEIR" enqueue t --id "$1" >/dev/null
    "$WEIR" work -q default --once -- sh -c "$2" 3>&- 2>work.log
}

job() {
    "$WEIR" job show "$1" --json | jq -r "${2:-.state}"
}

progress_is() {
    [[ "$(job "$1" .progress)" == *$2* ]]
}

@test "in a job they reach its worker: progress, notes and a result of a file" {
    in_job p 'weir progress 3/4 nearly; weir note one two; weir heartbeat; weir extend 1m
              until [ -e go ]; do sleep 0.05; done
              head -c 5000 /dev/zero | tr "\0" r | weir result -; echo not this' &
    until_true progress_is p '75 3/4 nearly'
    touch go
    wait $!
    [ "$(job p)" = done ]
    [ "$("$WEIR" job result p | wc -c)" = 5000 ]
    "$WEIR" job logs p | grep -q 'one two'
    in_job f 'echo from a file >mine; weir result mine'
    [ "$("$WEIR" job result f)" = 'from a file' ]
}

@test "in a job snooze and fail win over its exit status (R08)" {
    in_job later 'weir snooze 1h upstream is down; exit 0'
    [ "$(job later)" = delayed ]
    [ "$(job later .attempts)" = 0 ]
    [[ "$(job later .error)" == *'upstream is down'* ]]
    in_job never 'weir fail no such customer; exit 0'
    [ "$(job never)" = dead ]
    [[ "$(job never .error)" == *'no such customer'* ]]
    in_job again 'weir fail --in 2h disk is full'
    [ "$(job again)" = delayed ]
    [ "$(job again .attempts)" = 1 ]
    in_job last 'weir fail first; weir snooze 1h then; exit 3'
    [ "$(job last)" = delayed ]
    [ "$(job last .attempts)" = 0 ]
}

@test "a program that closes descriptor 3 reaches its worker by the socket" {
    in_job s 'python3 -c "
import subprocess
subprocess.run([\"weir\", \"fail\", \"from far below\"], check=True)"'
    [ "$(job s)" = dead ]
    [[ "$(job s .error)" == *'from far below'* ]]
    in_job token 'weir token'
    [[ "$("$WEIR" job result token)" == token:* ]]
}
