#!/bin/sh
# Runs a command, and again whenever it ends, as a Deployment does: a laptop that sleeps loses leases and connections.
# The loop stops on SIGTERM, and when the folder is gone: restarting.sh FOLDER COMMAND ARGS
folder=$1
shift
child=
stop() {
  trap '' TERM
  [ -n "$child" ] && kill "$child" 2>/dev/null && wait "$child"
  exit 0
}
trap stop TERM
while [ -d "$folder" ]; do
  "$@" &
  child=$!
  wait "$child"
  code=$?
  child=
  echo "restarting: exit $code" >&2
  sleep 1 &
  wait $!
done
