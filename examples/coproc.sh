#!/bin/sh
# A co-process for `weir work` in shell, with jq: counts the words of each payload.
#
#     weir work --coproc 'words=sh coproc.sh'
#
# docs/coproc-protocol.md is the specification. exec 3>&1 1>&2 keeps what commands print out
# of the protocol: it goes to the worker's log.
exec 3>&1 1>&2
while IFS= read -r line; do
    case $line in
    '{"hello"'*)
        echo '{"hello":"weir-coproc","version":1}' >&3
        continue
        ;;
    esac
    call=$(printf '%s' "$line" | jq .call)
    if n=$(printf '%s' "$line" | jq -j '.payload // (.payload_base64 | @base64d)' | wc -w); then
        echo "{\"call\":$call,\"answer\":\"ok\",\"result\":\"$((n))\"}" >&3
    else
        echo "{\"call\":$call,\"answer\":\"retry\",\"error\":\"cannot count\"}" >&3
    fi
done
