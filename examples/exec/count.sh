#!/bin/sh -eu
# A job in shell: counts the lines, words and bytes of its payload.
#   weir work -q texts -- examples/exec/count.sh
in=$WEIR_TMPDIR/in # this folder is private, and gone afterwards
cat >"$in"        # the payload
if [ ! -s "$in" ]; then
    echo "permanent there is nothing to count" >&3
    exit 65
fi
if [ "$(head -n 1 "$in")" = later ] && [ "$WEIR_ATTEMPT" = 1 ]; then
    echo "snooze 60 the text is not ready" >&3
    exit 75
fi
echo "progress 1/2 counting" >&3
echo "attempt $WEIR_ATTEMPT of $WEIR_MAX_ATTEMPTS" >&2 # its log
wc <"$in" | {
    read -r lines words bytes
    echo "progress 2/2 done" >&3
    printf '{"lines":%d,"words":%d,"bytes":%d}\n' "$lines" "$words" "$bytes" # the result
}
