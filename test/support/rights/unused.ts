/** Rights that no test uses, each with the reason why it is given all the same. */
export const UNUSED: Readonly<Record<string, string>> = {
  "host: get /readyz": "health is not audited in tests",
  "controller: get configmaps in kube-public": "read on clusters made by kubeadm, where no --home-api-server is given",
};

/** What tests have Legation try without the right, on purpose. */
export const FORBIDDEN: Readonly<Record<string, string>> = {};
