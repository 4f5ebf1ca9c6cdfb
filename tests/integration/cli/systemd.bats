#!/usr/bin/env bats
# dist/systemd: the unit is what systemd can read, and its times fit the worker's.

WEIR=${WEIR_TOOL:-$BATS_TEST_DIRNAME/../../../build/weir}

setup() {
    unit=$BATS_TEST_TMPDIR/weir-work@mail.service
    sed "s|^ExecStart=[^ ]*|ExecStart=$WEIR|" "$(dirname "$WEIR")/weir-work@.service" >"$unit"
}

setting() {
    sed -n "s/^$1=//p" "$unit"
}

@test "systemd reads the unit without a complaint" {
    command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
    run systemd-analyze verify --man=no "$unit"
    [ "$status" = 0 ]
    [ -z "$output" ]
}

@test "each line of the unit is a section, a comment, or a setting" {
    run grep -vE '^(\[(Unit|Service|Install)\]|#.*|[A-Z][A-Za-z]+=.*|)$' "$unit"
    [ -z "$output" ]
    [ "$(grep -c '^\[' "$unit")" = 3 ]
}

@test "the unit waits longer than the worker takes, and feeds its watchdog" {
    [ "$(setting Type)" = notify ]
    [ "$(setting KillMode)" = mixed ]
    # Grace time 20 s, then SIGTERM, 5 s, SIGKILL, and the answers.
    [ "$(setting TimeoutStopSec)" -gt 35 ]
    # Far longer than a turn of the supervisor, which waits up to 2 s for each child that died.
    [ "$(setting WatchdogSec)" -gt 25 ]
    [[ "$(setting RestartPreventExitStatus)" == *78* ]]
}

@test "the unit's command line is one that the tool takes" {
    printf 'lease = 1ms\n' >"$BATS_TEST_TMPDIR/mail.conf"
    run "$WEIR" work --config "$BATS_TEST_TMPDIR/mail.conf" -- true
    [ "$status" = 78 ]
    [[ "$(setting ExecStart)" == *"work --config /etc/weir/%i.conf" ]]
}
