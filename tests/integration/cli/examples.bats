#!/usr/bin/env bats
# The example programs of a worker in C do what they say.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    downloads=$(dirname "$(realpath "$WEIR")")/examples/example-downloads
    [ -x "$downloads" ] || skip "the examples are not built"
    command -v python3 >/dev/null || skip "needs python3"
}

# A web server for the files of this folder; its port is in $port.
start_pages() {
    printf 'hello pages' >page.txt
    python3 -u -m http.server --bind 127.0.0.1 0 >pages.out 2>pages.log 3>&- &
    pages=$!
    until_true grep -q port pages.out
    port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' pages.out)
}

teardown() {
    [ -z "${worker:-}" ] || kill "$worker" 2>/dev/null || true
    [ -z "${pages:-}" ] || kill "$pages" 2>/dev/null || true
}

@test "downloads: a worker with a session, settings and a cron entry, and its client" {
    start_pages
    "$downloads" work 3>&- &
    worker=$!
    exits 0 "$downloads" "http://127.0.0.1:$port/page.txt" "http://127.0.0.1:$port/page.txt"
    [ "$(grep -c "page.txt: 11 bytes" <<<"$output")" = 2 ]
    exits 1 "$downloads" "http://127.0.0.1:$port/none.txt"
    [[ "$output" == *"does not come"* ]]
    exits 1 "$downloads" "ftp://127.0.0.1/x"
    [[ "$output" == *"no address of a page"* ]]

    # What the worker's settings did.
    id=$("$WEIR" job ls -q downloads -s done -o id | head -1)
    [ "$("$WEIR" job result "$id")" = 11 ]
    [[ "$("$WEIR" job logs "$id")" == *"$id, attempt 1: done"* ]]
    [ "$("$WEIR" job show "$id" --json | jq .keep_result_ms)" = 3600000 ]
    until_true eval '"$WEIR" cron ls -q downloads --json | jq -e ".name == \"nightly\""'
    [ "$("$WEIR" cron show nightly -q downloads --json | jq -r .schedule)" = '0 3 * * *' ]
    kill "$worker"
    wait "$worker"
    worker=
    "$WEIR" audit --deep
}
