import type { Pod, PodSpec } from "../../../src/api/kubernetes.ts";
import { NODE_IMAGES } from "../clusters/node/config.ts";
import type { Call } from "./scenario.ts";

/** The one image of real nodes. */
export const IMAGE: string = NODE_IMAGES[0];

/** The command that runs a script. */
export function sh(script: string): string[] {
  return ["sh", "-c", script];
}

/** The command of a container that runs until it is stopped. */
export const WAITS: readonly string[] = sh("trap 'exit 0' TERM; echo started; sleep 600 & wait");

/** A pod named `web` with one container `main`, as far as it says nothing else. */
export function pod({ metadata, ...spec }: Partial<PodSpec> & { readonly metadata?: object }): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", labels: { app: "web" }, ...metadata },
    spec: {
      containers: [{ name: "main", image: IMAGE, command: [...WAITS] }],
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 2,
      // Kubelets warn of the default policy without a cluster's DNS.
      dnsPolicy: "Default",
      automountServiceAccountToken: false,
      ...spec,
    },
  };
}

/** The only container of a pod. */
export function main(command: readonly string[], more: object = {}): Pick<PodSpec, "containers"> {
  return { containers: [{ name: "main", image: IMAGE, command: [...command], ...more }] };
}

/** Makes objects. */
export function apply(...input: readonly object[]): Call {
  return { kubectl: "apply -f -", input };
}

const SANDBOX = '{.status.conditions[?(@.type=="PodReadyToStartContainers")].status}';

/** Waits until the pod `web` is in a phase. */
export function inPhase(phase: string): Call {
  return { kubectl: "get pod web -o 'jsonpath={.status.phase}'", until: new RegExp(`^${phase}`) };
}

/** Waits until the pod `web` ended in a phase and its kubelet reported its sandbox gone. */
export function endsIn(phase: string): Call {
  return {
    kubectl: `get pod web -o 'jsonpath={.status.phase} ${SANDBOX}'`,
    until: new RegExp(`^${phase} False`),
  };
}

/** Waits until all pods with a label are in their last phase. */
export function sandboxesGone(selector: string): Call {
  return {
    kubectl: `get pods -l ${selector} -o 'jsonpath={range .items[*]}${SANDBOX} {end}'`,
    until: /^False( False)*$/m,
  };
}

/** Waits until the pod `web` is ready. */
export const runs: Call = { kubectl: "wait pod/web --for=condition=Ready --timeout=150s" };
/** The pod `web` as it is; conditions are a set. */
export const yaml: Call = { kubectl: "get pod web -o yaml", unordered: true };

/** The events of the pod `web` once these reasons are among them. */
export function events(...reasons: readonly string[]): Call {
  const columns = "TYPE:.type,REASON:.reason,FROM:.source.component,OBJECT:.involvedObject.fieldPath,SAYS:.message";
  return {
    kubectl: `get events --field-selector=involvedObject.name=web --no-headers -o 'custom-columns=${columns}'`,
    until: new RegExp(["Scheduled", ...reasons].map((reason) => `(?=[^]* ${reason} )`).join("")),
    unordered: true,
  };
}
