#!/usr/bin/env bash
# Starts three kind clusters, Legation on the first, and a Deployment whose pods run in the other two.
# Needs Docker, kind, kubectl, and a clone of Legation after `npm ci`. down.sh removes all of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PWD/bin:$PATH

# 1. A host and two members, each of one node. Kubeconfigs for this machine are in the current folder. On the host,
#    names that begin with legation- are for virtual nodes only.
for name in host west east; do
  kind create cluster --name "demo-$name" --kubeconfig "$name.kubeconfig"
done
export KUBECONFIG=$PWD/host.kubeconfig

# 2. Legation's image, built here and copied to the host's node.
docker build -t legation:kind .
kind load docker-image legation:kind --name demo-host

# 3. Legation on the host. kindnet wants a route to each node's InternalIP, so virtual nodes have an ExternalIP.
legation install --cluster-name host --image legation:kind
kubectl -n legation-system set env deployment/legation-controller LEGATION_NODE_ADDRESS_TYPE=ExternalIP
kubectl -n legation-system rollout status deployment --timeout=5m

# 4. The members. The controller reaches them in Docker's network, by the names of their containers.
legation join west --member-kubeconfig west.kubeconfig --member-server https://demo-west-control-plane:6443 --labels region=eu
legation join east --member-kubeconfig east.kubeconfig --member-server https://demo-east-control-plane:6443 --labels region=us
legation status

# 5. A first workload.
kubectl apply -f examples/namespace.yaml
kubectl apply -f examples/deployment.yaml
kubectl -n shop rollout status deployment/web --timeout=5m
kubectl -n shop get pods -o wide
