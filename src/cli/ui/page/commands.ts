import { subjectOf } from "../../simulation/subjects.ts";

/** The commands that show in a terminal what a view shows. */
export interface Commands {
  readonly kubectl: string;
  readonly legation: string;
}

/** Returns the commands that show an object. `type`: a resource, or its kind in lower case. */
export function objectCommands(type: string, namespace: string | undefined, name: string): Commands {
  return {
    kubectl: `kubectl ${namespace === undefined ? "" : `-n ${namespace} `}get ${type} ${name} -o yaml`,
    legation: `legation status ${type}/${name}${namespace === undefined ? "" : ` -n ${namespace}`}`,
  };
}

/** `kind`: any kind that owns pods. The command line knows Kubernetes' own, and shows pods of others with their namespace. */
export function workloadCommands(kind: string, namespace: string, name: string): Commands {
  const commands = objectCommands(kind.toLowerCase(), namespace, name);
  return subjectOf(kind) === undefined ? { ...commands, legation: `legation status -n ${namespace}` } : commands;
}

/** A member alone could have the name of a type, so the command says which it is. */
export function memberCommands(name: string): Commands {
  return {
    kubectl: `kubectl get clusters.legation.dev ${name} -o yaml`,
    legation: `legation status member/${name}`,
  };
}

/** All members. */
export const MEMBERS_COMMANDS: Commands = { kubectl: "kubectl get clusters.legation.dev", legation: "legation status" };

/** Kueue's queues. */
export const QUEUES_COMMANDS: Commands = { kubectl: "kubectl get clusterqueues", legation: "legation status" };

/** The pods of one namespace, or of all. */
export function podsCommands(namespace: string | undefined): Commands {
  const where = namespace === undefined ? "-A" : `-n ${namespace}`;
  return {
    kubectl: `kubectl get pods -l legation.dev/proxy ${where} -o wide`,
    legation: `legation status ${where}`,
  };
}
