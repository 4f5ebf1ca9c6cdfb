# What the tests of the command line share: a private redis-server per file, on a Unix
# socket in a folder of its own, and a namespace per test.

WEIR=${WEIR_TOOL:-$BATS_TEST_DIRNAME/../../../build/weir}

# start_server NAME [redis arguments]: its socket is $BATS_FILE_TMPDIR/NAME.sock
start_server() {
    local name=$1 dir
    shift
    dir=$(mktemp -d)
    redis-server --port 0 --unixsocket "$dir/s" --save '' --appendonly no --dir "$dir" \
        "$@" >"$dir/log" 2>&1 3>&- 4>&- &
    echo $! >"$BATS_FILE_TMPDIR/$name.pid"
    echo "$dir" >"$BATS_FILE_TMPDIR/$name.dir"
    until_true [ -S "$dir/s" ]
}

stop_server() {
    local dir ok=0
    same_engine "$1" || ok=1
    kill -9 "$(cat "$BATS_FILE_TMPDIR/$1.pid")" 2>/dev/null || true
    dir=$(cat "$BATS_FILE_TMPDIR/$1.dir")
    rm -rf "$dir"
    return $ok
}

server_socket() {
    echo "$(cat "$BATS_FILE_TMPDIR/$1.dir")/s"
}

redis() {
    redis-cli -s "$(server_socket main)" "$@"
}

# engine_is list: are the queues of this run stored so? WEIR_ENGINE=stream runs any file on
# the other one.
engine_is() {
    [ "${WEIR_ENGINE:-list}" = "$1" ]
}

# The key of what waits.
waiting_key() { # QUEUE
    engine_is list && echo "$WEIR_NAMESPACE:{$1}:ready" || echo "$WEIR_NAMESPACE:{$1}:stream"
}

# For a test that gives its queues an engine of their own.
other_engine() { # QUEUE...
    printf "$WEIR_NAMESPACE:{%s}:config\n" "$@" >>"$BATS_FILE_TMPDIR/other_engines"
}

# What was made on this server has the engine of this run, so that no run tests another one
# than it says; and there is something, unless the file names no queue at all.
same_engine() { # NAME
    local key engine seen=0 socket
    socket=$(server_socket "$1")
    while read -r key; do
        engine=$(redis-cli -s "$socket" HGET "$key" engine)
        grep -qsxF "$key" "$BATS_FILE_TMPDIR/other_engines" && continue
        if ! engine_is "$engine"; then
            echo "$key: engine '$engine', but this run is of ${WEIR_ENGINE:-list}" >&2
            return 1
        fi
        seen=1
    done < <(redis-cli -s "$socket" --scan --pattern '*:{*}:config' 2>/dev/null)
    if [ "$1" = main ] && [ -n "${WEIR_ENGINE:-}" ] && [ $seen = 0 ]; then
        echo "no queue of the engine $WEIR_ENGINE" >&2
        return 1
    fi
}

# until_true COMMAND...: tries it for a minute, which is a bound on hangs alone.
until_true() {
    local end=$((SECONDS + 60))
    until "$@"; do
        if ((SECONDS > end)); then
            echo "never came true: $*" >&2
            return 1
        fi
        sleep 0.02
    done
}

# A clean environment: nothing of the caller's configures weir, and the folder is the test's own.
use_server() {
    cd "$BATS_TEST_TMPDIR"
    unset REDIS_URL VALKEY_URL WEIR_CONFIG WEIR_PASSWORD_FILE REDISCLI_AUTH NO_COLOR \
        FORCE_COLOR CLICOLOR_FORCE WEIR_OUTPUT WEIR_LEASE WEIR_MAX_RETRY WEIR_LOG
    export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
    export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
    export WEIR_URL WEIR_NAMESPACE=t$BATS_TEST_NUMBER
    WEIR_URL=unix://$(server_socket "$1")
}

# exits STATUS COMMAND...: runs it, checks the exit status; $output has both streams.
exits() {
    local want=$1
    shift
    run timeout 60 "$@"
    if [ "$status" -ne "$want" ]; then
        echo "exit $status instead of $want: $*"
        echo "$output"
        return 1
    fi
}

# says TEXT: the output of the last run holds it.
says() {
    if [[ "$output" != *"$1"* ]]; then
        echo "does not say: $1"
        echo "$output"
        return 1
    fi
}

# value JSON-TEXT JQ-EXPRESSION
value() {
    jq -rc "$2" <<<"$1"
}

# Standard input in hexadecimal digits.
bytes() {
    od -An -v -tx1 | tr -d ' \n'
}

# A job of queue $1 that is dead; prints its id.
make_dead() {
    "$WEIR" enqueue broken payload -q "$1"
    "$WEIR" work -q "$1" --drain -- sh -c 'echo "it broke" >&2; exit 65' >&2 3>&-
}

# What a command prints on a terminal.
on_terminal() {
    TERM=xterm script -qec "$*" /dev/null
}

# A wall clock that can be set while a process runs; the monotonic one goes on as it is. A
# test whose with_clock runs in the background begins with needs_clock.
needs_clock() {
    faketime=$(echo /usr/lib/*/faketime/libfaketimeMT.so.1)
    [ -e "$faketime" ] || skip 'no libfaketime'
    ! ldd "$WEIR" | grep -q libasan || skip 'the sanitizer wants to be loaded first'
}

with_clock() {
    local exec=
    [ "$1" != --exec ] || { exec=exec; shift; } # in the background: $! is the program
    needs_clock
    echo "$1" >"$BATS_TEST_TMPDIR/clock"
    $exec env LD_PRELOAD="$faketime" FAKETIME_TIMESTAMP_FILE="$BATS_TEST_TMPDIR/clock" \
        FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_RESET=1 "${@:2}"
}
