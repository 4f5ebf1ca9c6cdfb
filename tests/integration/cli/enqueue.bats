#!/usr/bin/env bats
# weir enqueue: one job.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

@test "in a pipe it prints the id and nothing else" {
    exits 0 "$WEIR" enqueue greet '{"name":"Ada"}'
    if engine_is list; then
        [[ "$output" =~ ^[0-9a-v]{20}$ ]]
    else
        [[ "$output" =~ ^[0-9]+-[0-9]+$ ]]
    fi
}

@test "on a terminal it says a sentence and what to do next" {
    run on_terminal "$WEIR" enqueue greet
    says "Queued "
    says "greet → default"
    says "follow: weir job wait "
}

@test "push is the same command" {
    exits 0 "$WEIR" push greet --id p1
    [ "$output" = p1 ]
}

@test "the order of flags and arguments is free" {
    "$WEIR" --json -q mail enqueue --retry=5 --id o1 greet --timeout 5m payload
    job=$("$WEIR" job --json show o1)
    [ "$(value "$job" .queue)" = mail ]
    [ "$(value "$job" .max_retry)" = 5 ]
    [ "$(value "$job" .timeout_ms)" = 300000 ]
    [ "$("$WEIR" job payload o1)" = payload ]
}

@test "after -- a payload may begin with a dash" {
    "$WEIR" enqueue greet --id d1 -- --not-a-flag
    [ "$("$WEIR" job payload d1)" = --not-a-flag ]
}

@test "the payload comes from stdin or a file, and @@ begins a text with @" {
    printf 'from stdin' | "$WEIR" enqueue t - --id a
    printf 'from file' >"$BATS_TEST_TMPDIR/p"
    "$WEIR" enqueue t "@$BATS_TEST_TMPDIR/p" --id b
    "$WEIR" enqueue t @@at --id c
    [ "$("$WEIR" job payload a)" = 'from stdin' ]
    [ "$("$WEIR" job payload b)" = 'from file' ]
    [ "$("$WEIR" job payload c)" = @at ]
    exits 74 "$WEIR" enqueue t @/does/not/exist
}

@test "the same job again is the same job; another one of that id is refused" {
    "$WEIR" enqueue t p --id same
    exits 0 "$WEIR" enqueue t p --id same --json
    [ "$(value "$output" .existed)" = true ]
    [ "$(value "$output" .id)" = same ]
    exits 1 "$WEIR" enqueue t other --id same
    says E_EXISTS
    exits 0 "$WEIR" enqueue t other --id same --replace
    [ "$("$WEIR" job payload same)" = other ]
    [ "$("$WEIR" status --json | jq .enqueued)" = 1 ]
}

@test "a job with a taken unique key is refused and names the holder" {
    "$WEIR" enqueue t --unique user:42 --id holder
    exits 1 "$WEIR" enqueue t --unique user:42 --id other
    says E_UNIQUE
    says holder
    "$WEIR" job cancel holder
    exits 0 "$WEIR" enqueue t --unique user:42 --id other
}

@test "a unique key holds for its time also when the job is over" {
    "$WEIR" enqueue t --unique 'user:42:1h' --id first
    "$WEIR" job cancel first
    exits 1 "$WEIR" enqueue t --unique user:42 --id second
}

@test "a delayed job waits in delayed with its due time" {
    "$WEIR" enqueue t --in 2h --id later
    "$WEIR" enqueue t --at 2099-01-02T03:04:05Z --id much-later
    job=$("$WEIR" job show later --json)
    [ "$(value "$job" .state)" = delayed ]
    [ "$(value "$job" '.due_at - .enqueued_at - 7200000 | . >= 0 and . <= 1')" = true ]
    [ "$("$WEIR" job show much-later --json | jq .due_at)" = 4071006245000 ]
}

@test "meta, retention and limits are stored" {
    "$WEIR" enqueue t --meta trace=abc --meta 'note=a b=c' --keep-result 5m \
        --max-deliveries 0 --retry 0 --timeout 0 --id m
    job=$("$WEIR" job show m --json)
    [ "$(value "$job" .keep_result_ms)" = 300000 ]
    [ "$(value "$job" .max_retry)" = 0 ]
    [ "$(value "$job" .max_deliveries)" = 0 ]
    [ "$(value "$job" .timeout_ms)" = 0 ]
    "$WEIR" enqueue t --id plain
    [ "$("$WEIR" job show plain --json | jq .keep_result_ms)" = 86400000 ]
}

@test "WEIR_MAX_RETRY is the default number of retries and a flag wins" {
    WEIR_MAX_RETRY=7 "$WEIR" enqueue t --id a
    MAX_RETRY=8 "$WEIR" enqueue t --id b
    WEIR_MAX_RETRY=7 "$WEIR" enqueue t --id c --retry 2
    [ "$("$WEIR" job show a --json | jq .max_retry)" = 7 ]
    [ "$("$WEIR" job show b --json | jq .max_retry)" = 8 ]
    [ "$("$WEIR" job show c --json | jq .max_retry)" = 2 ]
    exits 78 env WEIR_MAX_RETRY=many "$WEIR" enqueue t
    says WEIR_MAX_RETRY
}

@test "odd ids work everywhere or are refused at once D01" {
    long=$(printf 'x%.0s' {1..255})
    for id in a:b 1 01 '{x}' '}{' 'a b' '*' ../x é '%00' '-' "$long" $'\xff\xfe' "it's"; do
        flag=(--id "$id")
        exits 0 "$WEIR" enqueue t p "${flag[@]}"
        [ "$output" = "$id" ]
        if [ "$id" = - ]; then
            continue # as an argument it means stdin
        fi
        exits 0 "$WEIR" job show "$id" --json
        [ "$(value "$output" .state)" = ready ]
        exits 0 "$WEIR" job cancel -- "$id"
        exits 1 "$WEIR" job show "$id"
    done
    for id in '' $'a\nb' $'a\tb' $'\x7f' "${long}x"; do
        exits 64 "$WEIR" enqueue t p --id "$id"
        says "job id: 1 to 255 bytes"
    done
    [ "$("$WEIR" audit --json | jq -c '[.enqueued, .ready, .cancelled, .gap]')" = '[14,1,13,0]' ]
}

@test "dead jobs with odd ids can be retried and purged D01" {
    for id in a:b '{x}' 'a b' '*' é; do
        "$WEIR" enqueue t p --id "$id" -q odd
    done
    "$WEIR" work -q odd --drain -- sh -c 'exit 65' 3>&-
    for id in a:b '{x}' 'a b' '*' é; do
        exits 0 "$WEIR" dead show "$id"
        exits 0 "$WEIR" dead retry "$id"
        exits 1 "$WEIR" dead purge "$id"
    done
    [ "$("$WEIR" audit --json | jq -c '[.ready, .dead, .gap]')" = '[5,0,0]' ]
}

@test "payloads of any bytes come back as they were D03" {
    for size in 0 256 65536; do
        head -c "$size" /dev/urandom >"$BATS_TEST_TMPDIR/in"
        if [ "$size" = 256 ]; then
            for i in {0..255}; do printf "\\x$(printf %02x "$i")"; done >"$BATS_TEST_TMPDIR/in"
        fi
        id=$("$WEIR" enqueue t - <"$BATS_TEST_TMPDIR/in" -q bytes)
        "$WEIR" job payload "$id" >"$BATS_TEST_TMPDIR/out"
        cmp "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
        "$WEIR" work -q bytes --once -- cat 3>&-
        "$WEIR" job result "$id" >"$BATS_TEST_TMPDIR/out"
        cmp "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
    done
}

@test "a payload over the limit is refused and changes nothing D05" {
    "$WEIR" queue create small --payload-max 64k
    for size in 65535 65536; do
        head -c "$size" /dev/zero | "$WEIR" enqueue t - -q small
    done
    head -c 65537 /dev/zero >"$BATS_TEST_TMPDIR/big"
    exits 65 "$WEIR" enqueue t "@$BATS_TEST_TMPDIR/big" -q small
    says E_TOO_BIG
    says 65536
    head -c 1048576 /dev/zero | "$WEIR" enqueue t -
    head -c 1048577 /dev/zero >"$BATS_TEST_TMPDIR/big"
    exits 65 "$WEIR" enqueue t "@$BATS_TEST_TMPDIR/big"
    [ "$("$WEIR" audit --json | jq -s 'map(.ready) | add')" = 3 ]
}

@test "600 MB are refused before they are sent D05" {
    truncate -s 600M "$BATS_TEST_TMPDIR/huge"
    exits 65 "$WEIR" enqueue t "@$BATS_TEST_TMPDIR/huge"
    says E_TOO_BIG
    exits 0 "$WEIR" status
}

@test "bad values get one line and exit 64" {
    for flags in '--in -5' '--in 1e9' '--in NaN' '--in 5x' '--in 99999999999999999999' \
        '--in=' '--at yesterday' '--at 99999-01-01T00:00:00Z' '--retry -1' '--retry 1.5' \
        '--retry 99999999999' '--retry 0x10' '--backoff never' '--backoff exp:-2s' \
        '--timeout -1s' '--keep-result inf' '--expires 2001-01-01T00:00:00Z' \
        '--meta novalue' '--meta =x' '--in 5s --at now+5s' '--max-deliveries many'; do
        exits 64 "$WEIR" enqueue t $flags
        [ "${#lines[@]}" -le 2 ]
        says E_ARG
    done
    exits 64 "$WEIR" enqueue t --queue 'a{b'
    exits 64 "$WEIR" enqueue t --queue ''
    exits 64 "$WEIR" enqueue t --queue "$(printf 'q%.0s' {1..129})"
    exits 64 "$WEIR" enqueue ''
    exits 64 "$WEIR" enqueue "$(printf 't%.0s' {1..129})"
    exits 64 "$WEIR" enqueue $'a\nb'
    exits 64 "$WEIR" enqueue
    exits 64 "$WEIR" enqueue a b c
    [ -z "$("$WEIR" queue ls -o id)" ]
}

@test "--dry-run stores nothing" {
    exits 0 "$WEIR" enqueue t p -n
    [ -z "$("$WEIR" queue ls -o id)" ]
}

@test "--wait ends with the job and says how it went" {
    "$WEIR" work -q w --max-jobs 2 -- sh -c 'read x; [ "$x" = good ] || exit 65' 3>&- &
    exits 0 "$WEIR" enqueue t good -q w --wait
    exits 1 "$WEIR" enqueue t bad -q w --wait
    says E_JOB_FAILED
    wait
}
