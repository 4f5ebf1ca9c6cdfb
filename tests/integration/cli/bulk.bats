#!/usr/bin/env bats
# weir enqueue --from: a job a line.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    jobs=$BATS_TEST_TMPDIR/jobs.jsonl
}

@test "every line becomes a job and its id is printed, in order" {
    for i in {1..2500}; do echo "{\"type\":\"t\",\"id\":\"j$i\",\"payload\":\"p$i\"}"; done >"$jobs"
    "$WEIR" enqueue --from "$jobs" -q many >"$BATS_TEST_TMPDIR/ids"
    diff <(for i in {1..2500}; do echo "j$i"; done) "$BATS_TEST_TMPDIR/ids"
    [ "$("$WEIR" job ls -q many --limit 2500 -o id | head -n 3 | tr '\n' ' ')" = "j1 j2 j3 " ]
    [ "$("$WEIR" audit --json | jq -c '[.ready, .gap]')" = '[2500,0]' ]
}

@test "a line has the members of the flags of that name" {
    cat >"$jobs" <<'J'
{"type":"a","id":"1","queue":"other","in":"2h","retry":5,"timeout":"1m","keep_result":60,"max_deliveries":0,"meta":{"k":"v"},"backoff":"fixed:10s"}
{"type":"b","id":"2","payload_base64":"AAH/"}
{"type":"c","id":"3","at":"2099-01-01T00:00:00Z","unique":"u1","expires":"2h"}
{"type":"d","id":"4","payload":"q\u0000r","in":null}

J
    "$WEIR" enqueue --from "$jobs"
    job=$("$WEIR" job show 1 --json)
    [ "$(value "$job" '[.queue,.state,.max_retry,.timeout_ms,.keep_result_ms,.max_deliveries]')" = \
        '["other","delayed",5,60000,60000,0]' ]
    [ "$("$WEIR" job payload 2 | od -An -tx1 | tr -d ' ')" = 0001ff ]
    [ "$("$WEIR" job show 3 --json | jq -r .state)" = delayed ]
    [ "$("$WEIR" job payload 4 | od -An -tx1 | tr -d ' ')" = 710072 ]
    exits 1 "$WEIR" enqueue t --unique u1
}

@test "flags are the defaults of the lines" {
    echo '{"type":"a","id":"1"}
{"type":"a","id":"2","retry":1,"queue":"own"}' | "$WEIR" enqueue --from - -q mail --retry 9
    [ "$("$WEIR" job show 1 --json | jq -c '[.queue,.max_retry]')" = '["mail",9]' ]
    [ "$("$WEIR" job show 2 --json | jq -c '[.queue,.max_retry]')" = '["own",1]' ]
}

@test "a malformed line is named, the lines before it are stored" {
    printf '%s\n' '{"type":"a"}' '{"type":"a"}' '{"type":"a",' '{"type":"a"}' >"$jobs"
    exits 65 "$WEIR" enqueue --from "$jobs"
    says "$jobs:3: not JSON"
    says "2 jobs stored"
    [ "$("$WEIR" status --json | jq .ready)" = 2 ]
}

@test "with --continue-on-error the others are stored and every bad line is named" {
    printf '%s\n' '{"type":"a"}' nonsense '[1]' '{"payload":"x"}' '{"type":"a","in":"-5"}' \
        '{"type":"a","colour":"red"}' '{"type":"a","payload":{"x":1}}' \
        '{"type":"a","payload_base64":"%%%"}' '{"type":"a","type":"b"}' \
        '{"type":"a","queue":"x{y"}' '{"type":"a"}' >"$jobs"
    exits 65 "$WEIR" enqueue --from "$jobs" --continue-on-error
    for line in {2..10}; do says "$jobs:$line: "; done
    says "2 jobs stored"
    says "9 refused"
    [ "$("$WEIR" status --json | jq .ready)" = 2 ]
}

@test "a refused job is named by its line" {
    "$WEIR" enqueue a x --id taken
    printf '%s\n' '{"type":"a","id":"new"}' '{"type":"a","id":"taken","payload":"y"}' >"$jobs"
    exits 1 "$WEIR" enqueue --from "$jobs"
    says "$jobs:2: "
    says E_EXISTS
    exits 0 "$WEIR" job show new
}

@test "the same file twice stores nothing twice" {
    printf '%s\n' '{"type":"a","id":"1"}' '{"type":"a","id":"2"}' >"$jobs"
    "$WEIR" enqueue --from "$jobs"
    [ "$("$WEIR" enqueue --from "$jobs" --json | jq -s 'map(.existed)' -c)" = '[true,true]' ]
    [ "$("$WEIR" status --json | jq .enqueued)" = 2 ]
}

@test "bad flags of a bulk enqueue are refused" {
    exits 64 "$WEIR" enqueue t --from "$jobs"
    exits 64 "$WEIR" enqueue --from - --batch 0 </dev/null
    exits 64 "$WEIR" enqueue --from - --batch 1001 </dev/null
    exits 64 "$WEIR" enqueue --from - --id x </dev/null
    exits 74 "$WEIR" enqueue --from /does/not/exist
    exits 0 "$WEIR" enqueue --from - </dev/null
}

@test "--progress=json tells a machine on stderr how far it is" {
    exits 64 "$WEIR" enqueue --from - --progress=loud </dev/null
    exits 0 "$WEIR" enqueue --from - --progress=json <<<'{"type":"a"}'
}
