export const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {propagationpolicy.karmada.io/name: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "registry.example:5000/team/web:1.0", command: [serve], args: [-a, -b]}
      - {name: side, image: busybox}`;

export const CONFIG = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: b}`;

export interface Parts {
  readonly kind?: string;
  readonly name?: string;
  readonly selectors?: string;
  readonly rest?: string;
}

export function propagation(
  placement: string,
  {
    kind = "PropagationPolicy",
    name = "web",
    selectors = "[{apiVersion: apps/v1, kind: Deployment}]",
    rest = "",
  }: Parts = {},
): string {
  const namespace = kind.startsWith("Cluster") ? "" : ", namespace: shop";
  return `
apiVersion: policy.karmada.io/v1alpha1
kind: ${kind}
metadata: {name: ${name}${namespace}}
spec: {resourceSelectors: ${selectors}, placement: {${placement}}${rest}}`;
}

export const WEST_AND_EAST = "clusterAffinity: {clusterNames: [west, east]}";
export const DIVIDED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted";
