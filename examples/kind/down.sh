#!/usr/bin/env bash
# Removes what up.sh made.
set -euo pipefail
cd "$(dirname "$0")/../.."
for name in host west east; do
  kind delete cluster --name "demo-$name"
done
rm -f host.kubeconfig west.kubeconfig east.kubeconfig
