import { LAST_APPLIED_ANNOTATION } from "./last-applied.ts";

/**
 * Domains of labels and annotations by which tools know which objects are theirs, or what to do with them. Each domain stands for
 * those below it, too. docs/dependencies.md lists them by tool.
 */
const DOMAINS: ReadonlySet<string> = new Set([
  "argocd.argoproj.io",
  // Flux, and its operator.
  "fluxcd.io",
  "fluxcd.controlplane.io",
  "meta.helm.sh",
  // `kubectl apply --applyset`.
  "applyset.kubernetes.io",
  // kpt, cli-utils and Kustomize.
  "cli-utils.sigs.k8s.io",
  "config.kubernetes.io",
  "config.k8s.io",
  "kpt.dev",
  // Config Sync.
  "configsync.gke.io",
  "configmanagement.gke.io",
  // Carvel.
  "kapp.k14s.io",
  "carvel.dev",
  // Rancher's Fleet, and k3s.
  "fleet.cattle.io",
  "objectset.rio.cattle.io",
  // The Operator Lifecycle Manager.
  "operators.coreos.com",
  "olm.operatorframework.io",
  // Add-ons of clusters.
  "addonmanager.kubernetes.io",
  "addon.kops.k8s.io",
  "k0s.k0sproject.io",
  "kluctl.io",
  "projectsveltos.io",
  "pulumi.com",
  "spinnaker.io",
  // Propagation to clusters.
  "apps.open-cluster-management.io",
  "karmada.io",
  "kubefed.io",
  // Replicators, which would spread a copy over the member's namespaces.
  "kubed.appscode.com",
  "reflector.v1.k8s.emberstack.com",
  "replicator.v1.mittwald.de",
]);

/** Keys of the Operator Lifecycle Manager that have no domain. */
const OLM = "olm.";
/** Pods keep these: Services of catalogs select by `olm.catalogSource`, operators read `olm.targetNamespaces`. */
const OLM_DOMAINS: ReadonlySet<string> = new Set(["operators.coreos.com", "olm.operatorframework.io"]);
/** kapp writes its label into the selectors of Services and Deployments, and so into pods. */
const SELECTED_BY_KAPP = "kapp.k14s.io";

const MANAGED_BY = "app.kubernetes.io/managed-by";
const MANAGERS: ReadonlySet<string> = new Set(["Helm", "configmanagement.gke.io", "kops", "pulumi", "spinnaker"]);

/** Labels of a tool that selectors of pods use as well. */
const SHARED_LABELS: ReadonlySet<string> = new Set([
  // Argo CD's, where it tracks by label; otherwise a recommended label of Kubernetes.
  "app.kubernetes.io/instance",
  // Argo CD's before 0.11.
  "applications.argoproj.io/app-name",
  // `kubectl apply --prune` of the add-on manager.
  "kubernetes.io/cluster-service",
]);

/** Orders to Helm and Argo CD. The label `helm.sh/chart` is none. */
const HELM_DOMAIN = "helm.sh";

/** A pod keeps the labels that selectors may use, and the annotations that it may read of itself. */
type Bearer = "copy" | "pod";

/** Reports whether the label makes an object of a member a delivery tool's. */
export function isToolsLabel(key: string, value: string, bearer: Bearer): boolean {
  const domain = toolsDomain(key);
  if (bearer === "pod") return domain !== undefined && domain !== SELECTED_BY_KAPP && !OLM_DOMAINS.has(domain);
  if (key === MANAGED_BY) return MANAGERS.has(value);
  return domain !== undefined || key.startsWith(OLM) || SHARED_LABELS.has(key);
}

/** Reports whether the annotation makes an object of a member a delivery tool's, or tells the tool what to do with it. */
export function isToolsAnnotation(key: string, bearer: Bearer): boolean {
  // `kubectl apply --prune` deletes no object without it. It holds the whole object, a Secret's content included. A pod may read it.
  if (key === LAST_APPLIED_ANNOTATION) return bearer === "copy";
  if (key.startsWith(`${HELM_DOMAIN}/`)) return true;
  const domain = toolsDomain(key);
  if (bearer === "pod") return domain !== undefined && !OLM_DOMAINS.has(domain);
  return domain !== undefined || key.startsWith(OLM);
}

function toolsDomain(key: string): string | undefined {
  const slash = key.indexOf("/");
  if (slash < 0) return undefined;
  let domain = key.slice(0, slash);
  while (!DOMAINS.has(domain)) {
    const dot = domain.indexOf(".");
    if (dot < 0) return undefined;
    domain = domain.slice(dot + 1);
  }
  return domain;
}
