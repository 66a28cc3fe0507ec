import type { OTHER_PAGES } from "../../../scripts/documents/tested-pages.ts";
import type { Preparation } from "./run-page.ts";

const SHOP = `kubectl create namespace shop
kubectl label namespace shop legation.dev/delegation=annotated`;
const WITHOUT_SHOP = "kubectl delete namespace shop --timeout=180s --ignore-not-found";
const WEB = `kubectl apply -f examples/deployment.yaml
kubectl -n shop rollout status deployment/web --timeout=180s`;
const MEMBER = "kubectl --kubeconfig west.kubeconfig";
const READY = "kubectl wait clusters.legation.dev/west --for=condition=Ready --timeout=180s";
const ROLLED_OUT = "kubectl -n legation-system rollout status deployment --timeout=300s";
const ACCESS = `legation install --access
kubectl -n legation-access rollout status deployment --timeout=300s
kubectl wait apiservices/v1.access.legation.dev --for=condition=Available --timeout=120s
legation join west --member-kubeconfig west.kubeconfig --access
${MEMBER} create clusterrolebinding admins --clusterrole=admin --user=legation:admin --dry-run=client -o yaml | ${MEMBER} apply -f -`;

/** A CustomResourceDefinition of the type that a page allows. */
const GIZMOS = `kubectl apply -f - <<END
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.shop.example.com}
spec:
  group: shop.example.com
  names: {kind: Gizmo, plural: gizmos, singular: gizmo, listKind: GizmoList}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
kubectl wait crd/gizmos.shop.example.com --for=condition=Established --timeout=60s`;

const SETTINGS = `legation install --types configmaps
legation join west --member-kubeconfig west.kubeconfig --types configmaps
kubectl apply -f - <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
  annotations:
    legation.dev/whole: "true"
    legation.dev/clusters: west
    legation.dev/overrides: |
      - clusters: [west]
        patch:
        - {op: replace, path: /data/currency, value: USD}
data: {currency: EUR}
END
for attempt in $(seq 60); do
  ${MEMBER} -n shop get configmap settings && break
  sleep 1
done`;

/** Two claims, of a pod and of a StatefulSet, whose volumes west has. */
const CLAIMS = `for name in data data-db-0; do
  ${MEMBER} apply -f - <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-$name}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /tmp}
  claimRef: {namespace: shop, name: $name}
END
done
kubectl apply -f - <<END
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: reader, namespace: shop, annotations: {legation.dev/clusters: west}}
spec:
  containers: [{name: main, image: "busybox:1.37"}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop, annotations: {legation.dev/clusters: west}}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: main, image: "busybox:1.37", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
END
kubectl -n shop wait pod/reader --for=condition=Ready --timeout=120s
kubectl -n shop rollout status statefulset/db --timeout=120s
for attempt in $(seq 60); do
  kubectl -n shop get pvc data data-db-0 -o yaml | grep -c '"phase":"Bound"' | grep -qx 2 && break
  sleep 1
done`;

const PATIENT_POD = `kubectl apply -f - <<END
apiVersion: v1
kind: Pod
metadata: {name: too-large, namespace: shop, annotations: {legation.dev/delegate: "true"}}
spec:
  containers: [{name: main, image: "busybox:1.37", resources: {requests: {cpu: "900"}}}]
END`;

const WEB_0 = `kubectl apply -f - <<END
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop, annotations: {legation.dev/clusters: west}}
spec:
  containers: [{name: main, image: "busybox:1.37"}]
END
kubectl -n shop wait pod/web-0 --for=condition=Ready --timeout=120s`;

const SWEEP = `kubectl -n shop delete job sweep --ignore-not-found --timeout=60s
kubectl annotate --local -f examples/whole-job.yaml legation.dev/clusters=west -o yaml | kubectl apply -f -
export LEGATION_MEMBER_KUBECONFIG=west.kubeconfig`;

/** Undoes \`kubectl set env\` of the controller. */
function unset(...names: readonly string[]): string {
  const variables = names.map((name) => `${name}-`).join(" ");
  return `kubectl -n legation-system set env deployment/legation-controller deployment/legation-webhook ${variables}
${ROLLED_OUT}`;
}

const A_POD = "$(kubectl -n shop get pods -o jsonpath='{.items[0].metadata.name}')";

/** The state that each page supposes, after examples/kind/up.sh. Each leaves it as it was. */
export const PREPARATIONS: Readonly<Record<(typeof OTHER_PAGES)[number], Preparation>> = {
  "docs/placement.md": { first: `${SHOP}\ncp examples/deployment.yaml web.yaml`, last: WITHOUT_SHOP },
  "docs/migrating.md": {
    first: `${SHOP}
mkdir -p federated
cat > federated/web.yaml <<END
apiVersion: types.kubefed.io/v1beta1
kind: FederatedDeployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: nginx, image: "nginx:1.29"}]}
  placement: {clusters: [{name: west}, {name: east}]}
END
cp examples/deployment.yaml application.yaml
cat > policies.yaml <<END
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [west]}}
END`,
    last: WITHOUT_SHOP,
  },
  "docs/network-policies.md": {
    first: `kubectl create namespace team
kubectl -n team apply -f - <<END
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: allow-frontend}
spec: {podSelector: {}}
END`,
    last: "kubectl delete namespace team --timeout=120s",
  },
  "docs/engines.md": {
    first: "for name in flows ray training; do kubectl create namespace $name; done",
    before: {
      "jobset-name": "kubectl annotate namespace flows legation.dev/group-by-",
      "group-key": "kubectl annotate namespace flows legation.dev/group-by-",
    },
    last: `kubectl delete namespace flows ray training --timeout=120s\n${unset("LEGATION_VIRTUAL_NODE_PODS")}`,
  },
  "docs/host-components.md": {
    first: `${MEMBER} delete namespace shop --ignore-not-found --timeout=120s
${SHOP}
kubectl annotate namespace shop openshift.io/sa.scc.uid-range=1000/1000`,
    last: `${MEMBER} delete namespace shop --timeout=120s
${WITHOUT_SHOP}
kubectl label clusters.legation.dev west kubernetes.io/hostname-`,
  },
  "docs/storage.md": {
    first: `${SHOP}\n${CLAIMS}`,
    words: { NAME: "volume-data-db-0" },
    last: `${WITHOUT_SHOP}\n${MEMBER} delete persistentvolumes --all --timeout=60s`,
  },
  "docs/whole-jobs.md": {
    first: SHOP,
    before: {
      "--for=condition=complete job/sweep": SWEEP,
      "plan -f render.yaml": "cp examples/divided-job.yaml render.yaml",
      '"suspend":true': SWEEP,
      "clusterrole=view --user=ann": "cp west.kubeconfig members.yaml",
    },
    last: `kubectl delete mutatingadmissionpolicies,mutatingadmissionpolicybindings jobs-run-whole --ignore-not-found\n${WITHOUT_SHOP}`,
  },
  "docs/whole-objects.md": {
    first: SHOP,
    before: {
      "--types gizmos.shop.example.com": GIZMOS,
      "get service web": "kubectl -n shop create service clusterip web --tcp=80",
      "'{.data.currency}'": SETTINGS,
    },
    last: `${WITHOUT_SHOP}
kubectl delete delegatedtypes --all --timeout=60s
kubectl delete crd gizmos.shop.example.com --ignore-not-found`,
  },
  "docs/cluster-profiles.md": {
    first: "cp definition.yaml multicluster.x-k8s.io_clusterprofiles.yaml\nkubectl create namespace kueue-system",
    before: {
      "get clusterprofiles -n legation-system": `for attempt in $(seq 120); do
  kubectl -n legation-system get clusterprofiles east west && break
  sleep 1
done`,
      "--as alice": `kubectl create clusterrole profiles --verb=get --resource=clusterprofiles.multicluster.x-k8s.io
kubectl -n kueue-system create rolebinding profiles --clusterrole=profiles --user=alice`,
    },
    last: `kubectl delete namespace kueue-system --timeout=120s
kubectl delete clusterrole profiles
kubectl delete crd clusterprofiles.multicluster.x-k8s.io --timeout=60s`,
  },
  "docs/ui.md": { last: "kubectl delete -k manifests/ui --timeout=120s" },
  "docs/tasks/author.md": {
    first: "kubectl apply -f examples/namespace.yaml",
    last: "kubectl delete namespace shop --timeout=120s",
  },
  "docs/tasks/access.md": { last: "kubectl delete csr alice" },
  "docs/access.md": {
    first: `${MEMBER} create namespace team\n${ACCESS}`,
    words: { HOST: "$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}' | cut -d/ -f3)" },
    last: `${MEMBER} delete namespace team --timeout=120s`,
  },
  "docs/cli.md": {
    first: `${ACCESS}\n${SHOP}\n${WEB_0}`,
    before: { "logs job/sweep": `${SWEEP}\nkubectl -n shop wait job/sweep --for=condition=complete --timeout=180s` },
    last: WITHOUT_SHOP,
  },
  "docs/troubleshooting.md": {
    first: `${SHOP}\n${WEB}`,
    before: {
      "status pod too-large": PATIENT_POD,
      ".decision": "kubectl -n shop delete pods -l app=web --wait=false\nkubectl -n shop rollout status deployment/web",
    },
    words: { NAME: A_POD, NAMESPACE: "shop" },
    last: `${WITHOUT_SHOP}\n${unset("LEGATION_LOG_LEVEL")}`,
  },
  "docs/kubelet-api.md": {
    before: {
      "certificate approve": `for attempt in $(seq 60); do
  kubectl get certificatesigningrequests -o name | grep legation-kubelet && break
  sleep 1
done`,
    },
    words: {
      NAME: "$(kubectl get certificatesigningrequests -o name | grep legation-kubelet | head -1 | cut -d/ -f2)",
    },
    last: unset("LEGATION_KUBELET_CERTIFICATE_SIGNER"),
  },
  "docs/home-api.md": {
    last: `kubectl patch clusters.legation.dev west --type=merge -p '{"spec":{"homeAPI":null}}'
${unset("LEGATION_HOME_API_SERVER")}`,
  },
  "docs/credentials.md": {
    first: `${SHOP}\n${WEB}`,
    before: { "delete serviceaccounts legation-controller": READY },
    last: `${ROLLED_OUT}\n${WITHOUT_SHOP}`,
  },
  "docs/backup.md": { words: { OLD_UID: "11111111-2222-3333-4444-555555555555" }, last: ROLLED_OUT },
  "docs/runbook.md": { first: ACCESS, last: ROLLED_OUT },
  "docs/operations.md": {
    first: `${SHOP}\n${WEB}`,
    before: {
      "replicator.v1.mittwald.de": `kubectl -n shop create secret generic spread
kubectl -n shop annotate secret spread replicator.v1.mittwald.de/replicated-keys=a`,
      "kubectl cordon legation-west\nkubectl drain": READY,
      'grep "$(kubectl': `kubectl -n legation-system set env deployment/legation-controller LEGATION_LOG_LEVEL=debug
${ROLLED_OUT}
kubectl -n shop rollout restart deployment web
kubectl -n shop rollout status deployment/web --timeout=180s`,
    },
    words: { NAME: A_POD, NAMESPACE: "shop" },
    last: `legation join west --member-kubeconfig west.kubeconfig --member-server https://demo-west-control-plane:6443
kubectl delete clusterrolebinding scientists-see-legation
${unset("LEGATION_LOG_LEVEL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG")}
${WITHOUT_SHOP}`,
  },
  "docs/lost-members.md": {},
  "docs/agents.md": {
    last: `kubectl -n legation-system delete service legation-hub --ignore-not-found
legation join west --member-kubeconfig west.kubeconfig --member-server https://demo-west-control-plane:6443`,
  },
};
