#!/usr/bin/env bash
# It's a deployment (to one host).
set -euo pipefail

usage() {
    echo "usage: $0 start|stop|(restart)"
    exit 1
}

start() {
    if [[ -z "${HOST:-}" ]]; then
        echo "no host"
        return 1
    fi
    if [[ -z "${PORT:-}" ]]; then
        echo "no port"
        return 1
    fi
    ssh "$HOST" "serve --port ${PORT}" &
}

stop() {
    for pid in $(pgrep serve || true); do
        kill "$pid"
    done
}

case "${1:-}" in
    start)
        start
        ;;
    stop)
        stop
        ;;
    restart|again)
        stop
        start
        ;;
    *)
        usage
        ;;
esac

files=(
    a.txt
    b.txt
)
for file in "${files[@]}"; do
    if [ -f "$file" ]; then
        lines=$(( $(wc -l < "$file") + 1 ))
        echo "$file: ${lines} :)"
    fi
done
cat <<EOF
it's done (nearly
EOF
