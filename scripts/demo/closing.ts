/** A demo that keeps running. */
export interface KeptDemo {
  readonly directory: string;
  readonly kubectl: string;
  readonly clusters: readonly { readonly name: string; readonly kubeconfig: string }[];
  /** File with every command of the tour and its output. */
  readonly transcript: string;
  /** Member with a real node. Undefined if all nodes are simulated. */
  readonly real: string | undefined;
}

/** Commands worth trying first, with what they show. */
const TRIES: readonly (readonly [string, string])[] = [
  ["kubectl -n shop scale deployment/web --replicas=20", "then: legation status deployment/web -n shop"],
  ["legation plan -f examples/deployment.yaml", "where its pods would go, and why"],
  ["legation status", "the members; with `pod too-large -n shop` why that pod waits"],
  ["legation ui", "all of it in a browser"],
];
const PROCESSES = ["webhook", "controller", "access", "agent"];
const LOGS = ["kubectl -n shop logs talker", "a log from a cluster that the host cannot reach"] as const;
const OBJECTS = ["legation get pods -n shop", "pods of all members in one table"] as const;

/** Returns the lines by which a terminal reaches the clusters of the demo. */
export function environmentLines({ directory, kubectl }: Pick<KeptDemo, "directory" | "kubectl">): string[] {
  return [
    `export DEMO=${directory}`,
    "export KUBECONFIG=$DEMO/host/kubeconfig",
    `alias kubectl=${kubectl}`,
    "export PATH=$PWD/bin:$PATH",
  ];
}

/** Returns the text that ends a demo which keeps running. */
export function closingText(demo: KeptDemo): string[] {
  const { directory, clusters, transcript, real } = demo;
  const simulated = clusters.map(({ name }) => name).filter((name) => name !== real && name !== "host");
  const inFolder = (text: string): string => text.replaceAll(directory, "$DEMO");
  const tries = [...TRIES, real === undefined ? OBJECTS : LOGS];
  const width = Math.max(...tries.map(([command]) => command.length));
  return [
    "All of it keeps running. In a terminal, in this folder:",
    ...environmentLines(demo).map((line) => `   ${line}`),
    "",
    "Try next:",
    ...tries.map(([command, shows]) => `   ${command.padEnd(width)}   # ${shows}`),
    "",
    `Nodes of ${simulated.join(", ")} are simulated: their pods run no containers, so they have no logs, exec or volumes.`,
    ...(real === undefined ? [] : [`The node of ${real} is real: use the pod talker there.`]),
    "",
    `Kubeconfigs   ${inFolder(clusters.map(({ kubeconfig }) => kubeconfig).join(" "))}`,
    `Logs          ${PROCESSES.map((name) => `$DEMO/${name}.log`).join(" ")}`,
    `The tour      ${transcript}`,
    "Processes of Legation start again when they end. Their tokens end after 24 hours.",
    "",
    "To stop it:   npm run demo -- --stop",
  ];
}
