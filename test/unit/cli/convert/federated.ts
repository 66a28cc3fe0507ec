export const TEMPLATE = "{metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: web:1, args: [a]}]}}";

interface Parts {
  readonly kind?: string;
  readonly spec?: string;
  readonly placement?: string;
  readonly overrides?: string;
  readonly metadata?: string;
}

export function federated({
  kind = "Deployment",
  spec = `replicas: 3, template: ${TEMPLATE}`,
  placement = "clusters: [{name: west}, {name: east}]",
  overrides = "[]",
  metadata = "",
}: Parts = {}): string {
  return `
apiVersion: types.kubefed.io/v1beta1
kind: Federated${kind}
metadata: {name: web, namespace: shop, uid: u, finalizers: [kubefed.io/sync-controller]${metadata}}
spec:
  template: {metadata: {labels: {app: web}}, spec: {${spec}}}
  placement: {${placement}}
  overrides: ${overrides}
status: {}`;
}

export function preference(spec: string, kind = "Replica"): string {
  return `
apiVersion: scheduling.kubefed.io/v1alpha1
kind: ${kind}SchedulingPreference
metadata: {name: web, namespace: shop}
spec: {${spec}}`;
}
