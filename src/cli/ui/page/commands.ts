/** The commands that show in a terminal what a view shows. */
export interface Commands {
  readonly kubectl: string;
  readonly legation: string;
}

export function podCommands(namespace: string, name: string): Commands {
  return {
    kubectl: `kubectl -n ${namespace} get pod ${name} -o yaml`,
    legation: `legation status pod ${name} -n ${namespace}`,
  };
}

export function workloadCommands(kind: string, namespace: string, name: string): Commands {
  const subject = `${kind.toLowerCase()}/${name}`;
  return {
    kubectl: `kubectl -n ${namespace} get ${subject} -o yaml`,
    legation: `legation status ${subject} -n ${namespace}`,
  };
}

/** `type`: name of the DelegatedType. */
export function objectCommands(type: string, namespace: string | undefined, name: string): Commands {
  return {
    kubectl: `kubectl ${namespace === undefined ? "" : `-n ${namespace} `}get ${type} ${name} -o yaml`,
    legation: `legation status ${type}/${name}${namespace === undefined ? "" : ` -n ${namespace}`}`,
  };
}

export function memberCommands(name: string): Commands {
  return { kubectl: `kubectl get clusters.legation.dev ${name} -o yaml`, legation: "legation status" };
}

/** The pods of one namespace, or of all. */
export function podsCommands(namespace: string | undefined): Commands {
  return {
    kubectl: `kubectl get pods -l legation.dev/proxy ${namespace === undefined ? "-A" : `-n ${namespace}`} -o wide`,
    legation: namespace === undefined ? "legation status" : `legation status -n ${namespace}`,
  };
}
