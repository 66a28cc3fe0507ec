import type { CommandEntry, Equip } from "./shared/command.ts";

/** All commands, in the groups of `legation --help`. Each is loaded when it is called: the help needs no HTTP server. */
export const COMMANDS: readonly CommandEntry[] = [
  ...group("Where pods are, and why:", [
    entry(
      "plan",
      "show where the pods of a manifest would go, and why not elsewhere",
      () => import("./plan/command.ts"),
    ),
    entry("status", "show members, where pods are, and why one waits", () => import("./status/command.ts")),
    entry(
      "doctor",
      "check an installation from end to end, with a remedy for each finding",
      () => import("./doctor/command.ts"),
    ),
    entry("ui", "show members, workloads and pods on a web page", () => import("./ui/command.ts")),
  ]),
  ...group("Objects in members:", [
    entry("get", "show objects of all members in one table", () => import("./get/command.ts")),
    entry("describe", "show objects of all members in full, with their events", () => import("./describe/command.ts")),
    entry("logs", "show the logs of all pods of a Job, or of any pods in members", () => import("./logs/command.ts")),
    entry(
      "kubeconfig",
      "print a kubeconfig for a member, which is reached through the host",
      () => import("./kubeconfig/command.ts"),
    ),
    entry(
      "credential",
      "exec plugin: give readers of ClusterProfiles their own credential for the host",
      () => import("./credential/command.ts"),
    ),
  ]),
  ...group("Set up and take down:", [
    entry("install", "install or upgrade Legation on the host cluster", () => import("./install/command.ts")),
    entry("uninstall", "take Legation off the host cluster", () => import("./uninstall/command.ts")),
    entry("join", "join a member cluster to the host", () => import("./join/command.ts")),
    entry("unjoin", "take a member cluster out", () => import("./unjoin/command.ts")),
    entry(
      "convert",
      "turn objects of KubeFed, Karmada and Admiralty into ordinary manifests",
      () => import("./convert/command.ts"),
    ),
  ]),
  ...group("Processes of an installation:", [
    entry("webhook", "run the admission webhook", () => import("./webhook/command.ts")),
    entry("controller", "run the controller", () => import("./controller/command.ts")),
    entry("access", "serve the members' API servers to users of the host", () => import("./access/command.ts")),
    entry("relay", "carry connections of relayed Services to pods in members", () => import("./relay/command.ts")),
    entry("agent", "connect the member in which it runs to its host", () => import("./agent/command.ts")),
  ]),
  ...group("This command:", [
    entry(
      "completion",
      "print a script that completes words in bash, zsh or fish",
      () => import("./completion/command.ts"),
    ),
    entry(
      "version",
      "print the versions of the command line, the host and the members",
      () => import("./version/command.ts"),
    ),
  ]),
];

type Ungrouped = Omit<CommandEntry, "group">;

function group(heading: string, entries: readonly Ungrouped[]): CommandEntry[] {
  return entries.map((each) => ({ ...each, group: heading }));
}

function entry(name: string, summary: string, module: () => Promise<{ readonly command: Equip }>): Ungrouped {
  return { name, summary, load: async () => (await module()).command };
}
