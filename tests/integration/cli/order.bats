#!/usr/bin/env bats
# enqueue --key K --ordered, in all the ways in which a job is stored.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

# Appends the payload to $BATS_TEST_TMPDIR/log; j1 fails twice.
handler() {
    cat >"$BATS_TEST_TMPDIR/handler" <<END
#!/bin/sh
read -r payload
echo "\$payload" >>"$BATS_TEST_TMPDIR/log"
[ "\$payload" != j1 ] || [ "\$(grep -c j1 "$BATS_TEST_TMPDIR/log")" -gt 2 ]
END
    chmod +x "$BATS_TEST_TMPDIR/handler"
}

@test "j1 fails twice, j2 and j3 wait for it, another key does not (R07)" {
    handler
    for j in j1 j2 j3; do
        "$WEIR" enqueue t "$j" --id "$j" --key K --ordered --backoff fixed:150ms,0%
    done
    "$WEIR" enqueue t other --key L --ordered
    line=$("$WEIR" job show j3 --json)
    [ "$(value "$line" '.state + " " + .waits_behind')" = 'delayed j2' ]
    [ "$(value "$("$WEIR" status --json)" .parked)" = 2 ]
    [ -z "$("$WEIR" job ls --overdue -o id)$("$WEIR" job ls --upcoming -o id)" ]
    exits 1 "$WEIR" job run j3
    says 'waits for the end of j2'
    "$WEIR" work -c 8 --max-jobs 6 -- "$BATS_TEST_TMPDIR/handler" 3>&-
    [ "$(grep -v other "$BATS_TEST_TMPDIR/log" | tr '\n' ' ')" = 'j1 j1 j1 j2 j3 ' ]
    [ "$(sed -n '1,2p' "$BATS_TEST_TMPDIR/log" | sort | tr '\n' ' ')" = 'j1 other ' ]
    exits 0 "$WEIR" audit --deep
}

@test "--drain runs a whole line, and a whole chain (R07)" {
    for j in a b c d; do "$WEIR" enqueue t "$j" --id "$j" --key K --ordered; done
    "$WEIR" enqueue t s1 --id s1 --then t,t@next,t@next
    "$WEIR" queue create next
    exits 0 "$WEIR" work -q default -q next -c 2 --drain -- true
    [ "$("$WEIR" audit -q default --json | jq -c '[.done, .ready, .delayed]')" = '[6,0,0]' ]
    [ "$("$WEIR" audit -q next --json | jq -c '[.done, .ready, .delayed]')" = '[2,0,0]' ]
}

@test "--drain runs what stands behind a job that died" {
    for j in a b c; do "$WEIR" enqueue t "$j" --id "$j" --key K --ordered; done
    exits 0 "$WEIR" work --drain -- sh -c '[ "$(cat)" != a ] || exit 65'
    [ "$("$WEIR" audit --json | jq -c '[.done, .dead, .ready, .delayed]')" = '[2,1,0,0]' ]
}

@test "lines of --from, weir run and cron entries stand in the same line (R07)" {
    printf '%s\n' '{"type":"t","id":"a","key":"K","ordered":true}' \
        '{"type":"t","id":"b","key":"K","ordered":true}' | "$WEIR" enqueue --from -
    id=$("$WEIR" run --detach --key K --ordered -- true)
    [ "$(value "$("$WEIR" job show "$id" --json)" .waits_behind)" = b ]
    "$WEIR" cron add c '@yearly' t --key K --ordered
    "$WEIR" cron run c
    made=$("$WEIR" job ls -s delayed -t t --json | jq -r 'select(.id | startswith("cron:")) | .waits_behind')
    [ "$made" = "$id" ]
    [ "$(value "$("$WEIR" cron show c --json)" .order_key)" = K ]
    "$WEIR" job cancel b
    [ "$(value "$("$WEIR" job show "$id" --json)" .waits_behind)" = a ]
    exits 0 "$WEIR" audit --deep
}

@test "a key alone, and what would move a job in its line, are refused" {
    exits 64 "$WEIR" enqueue t --key K
    says '--ordered'
    exits 64 "$WEIR" enqueue t --ordered
    says '--key'
    exits 64 "$WEIR" enqueue t --key '' --ordered
    exits 64 "$WEIR" enqueue t --key K --ordered --unique u --debounce 5s
    exits 64 "$WEIR" enqueue t --key K --ordered --unique u --keep-last
    exits 65 "$WEIR" enqueue --from - <<<'{"type":"t","key":"K"}'
}
