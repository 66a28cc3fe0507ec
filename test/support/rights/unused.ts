const APPLIED = "an apply that creates needs it, and is a patch in the audit log";
const BESIDE = "the API server asks for it beside `patch` on the status, and no request names it";
const GANGS =
  "as those of PodGroups of the coscheduling plugin, by the same code: clusters with Kubernetes' own gangs are a test's own";
const LONG = "used by tests of `npm run test:long` alone: ServiceExports, streams and their certificate";
const SAME_WAY = "copies of service accounts change and go as those of ConfigMaps and Secrets do, by the same code";

/** Rights that tests use seldom or never, each with the reason why it is given all the same. */
export const UNUSED: Readonly<Record<string, string>> = {
  "controller: create discovery.k8s.io/endpointslices in legation-system": APPLIED,
  "access: create serviceaccounts/token in legation-system":
    "at half of a token's life, of 15 days: test/unit/access/token-renewal.test.ts",
  "controller: create secrets in legation-access": APPLIED,
  "access: update secrets in legation-access": "the certificate is renewed after two thirds of its life",
  "controller: patch resource.k8s.io/resourceclaims/binding": BESIDE,
  "controller: arbitrary-node:patch resource.k8s.io/resourceclaims/driver": BESIDE,
  ...Object.fromEntries(
    ["list", "watch", "patch"].map((verb) => [
      `controller: ${verb} scheduling.k8s.io/podgroups${verb === "patch" ? "/status" : ""}`,
      GANGS,
    ]),
  ),
  ...Object.fromEntries(
    [
      "controller: create certificates.k8s.io/certificatesigningrequests",
      "controller: get certificates.k8s.io/certificatesigningrequests",
      "host: create multicluster.x-k8s.io/serviceexports",
      "host: delete multicluster.x-k8s.io/serviceexports",
      "host: create pods/attach",
      "host: create pods/portforward",
      "host: get pods/portforward",
    ].map((right) => [right, LONG]),
  ),
  "host: get /readyz": "the members' probe; audit logs leave health checks out",
  "host: delete serviceaccounts": SAME_WAY,
  "host: patch serviceaccounts": SAME_WAY,
};

const LOOKS = "`legation unjoin` without an administrator of the member looks for what is left as far as it may";
const REMOVES = "`legation unjoin` without an administrator of the member removes what it may";
const UNINSTALLED =
  "started again after `legation uninstall`, or while it is on its way; with the rights, who may not read would not work";

const LEAVES =
  "one that leaves reads the uids of its access where it may; its account tells the ClusterRole's where it may not";

/** Requests that are tried without the right, with the reason. A trailing `*` matches anything. */
export const FORBIDDEN: Readonly<Record<string, string>> = {
  "host: list *": LOOKS,
  "controller: list *": UNINSTALLED,
  "controller: watch *": UNINSTALLED,
  "controller: get *": UNINSTALLED,
  "controller: update coordination.k8s.io/leases in legation-system": UNINSTALLED,
  "webhook: get *": UNINSTALLED,
  "webhook: list *": UNINSTALLED,
  "webhook: watch *": UNINSTALLED,
  "host: delete rbac.authorization.k8s.io/clusterrolebindings": REMOVES,
  "host: get rbac.authorization.k8s.io/clusterrolebindings": LEAVES,
  "host: get rbac.authorization.k8s.io/clusterroles": LEAVES,
  "host: delete serviceaccounts in legation-system": REMOVES,
  "host: get namespaces/status in kube-system":
    "`legation doctor` reads a member's clock from the headers of any response, also of a refusal",
  "agent: get services in legation-system":
    "the Role names the agent's own Service: an API server may not have read it yet, or `unjoin` has just deleted it",
  "host: watch events": "members that joined with an earlier version's rights",
  "controller: patch certificates.k8s.io/certificatesigningrequests/approval":
    "an operator gives it (docs/kubelet-api.md), or approves by hand",
};
