#!/bin/sh
# A handler for weir work: the payload is the path of a file, the result its SHA-256.
#   weir work -q files -- examples/hash.sh
# Exit 0 is done, 75 later (uncharged), 65 never, anything else is tried again.
IFS= read -r path || [ -n "$path" ] || {
    echo 'no path in the payload' >&2
    exit 65
}
[ -e "$path" ] || {
    echo "no file $path" >&2
    exit 65
}
exec sha256sum <"$path"
