#!/bin/sh
# Sorts letters; what it is not sure of goes to people, as a job in the queue "review".
# A follow-up job comes exactly once, if and when this job succeeds.
#
#     weir work -q letters -- examples/exec/review.sh
set -eu
letter=$(cat)
case $letter in
*invoice*) echo bills ;;
*holiday*) echo travel ;;
*)
    printf 'push {"queue":"review","type":"letter","id":"review-%s","payload_base64":"%s"}\n' \
        "$WEIR_JOB_ID" "$(printf %s "$letter" | base64 | tr -d '\n')" >&3
    echo unsure
    ;;
esac
