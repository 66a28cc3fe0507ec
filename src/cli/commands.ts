import { type CommandEntry, equipped } from "./shared/command.ts";

/** All commands. Each is loaded when it is called, so that `legation --help` need not load an HTTP server. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "install",
    summary: "install or upgrade Legation on the host cluster",
    load: async () => (await import("./install/command.ts")).installCommand,
  },
  {
    name: "uninstall",
    summary: "take Legation off the host cluster",
    load: async () => (await import("./uninstall/command.ts")).uninstallCommand,
  },
  {
    name: "webhook",
    summary: "run the admission webhook",
    load: async () => equipped((await import("./webhook/command.ts")).webhookCommand),
  },
  {
    name: "controller",
    summary: "run the controller",
    load: async () => (await import("./controller/command.ts")).controllerCommand,
  },
  {
    name: "access",
    summary: "serve the members' API servers to users of the host",
    load: async () => equipped((await import("./access/command.ts")).accessCommand),
  },
  {
    name: "agent",
    summary: "connect the member in which it runs to its host",
    load: async () => (await import("./agent/command.ts")).agentCommand,
  },
  {
    name: "join",
    summary: "join a member cluster to the host",
    load: async () => (await import("./join/command.ts")).joinCommand,
  },
  {
    name: "unjoin",
    summary: "take a member cluster out",
    load: async () => (await import("./unjoin/command.ts")).unjoinCommand,
  },
  {
    name: "kubeconfig",
    summary: "print a kubeconfig for a member, which is reached through the host",
    load: async () => equipped((await import("./kubeconfig/command.ts")).kubeconfigCommand),
  },
  {
    name: "plan",
    summary: "show where the pods of a manifest would go, and why not elsewhere",
    load: async () => equipped((await import("./plan/command.ts")).planCommand),
  },
  {
    name: "status",
    summary: "show the member clusters, one pod's way, or a workload's division",
    load: async () => equipped((await import("./status/command.ts")).statusCommand),
  },
  {
    name: "doctor",
    summary: "check an installation from end to end, with a remedy for each finding",
    load: async () => (await import("./doctor/command.ts")).doctorCommand,
  },
  {
    name: "get",
    summary: "show objects of all members in one table",
    load: async () => (await import("./get/command.ts")).getCommand,
  },
  {
    name: "describe",
    summary: "show objects of all members in full, with their events",
    load: async () => (await import("./describe/command.ts")).describeCommand,
  },
  {
    name: "logs",
    summary: "show the logs of all pods of a Job, or of any pods in members",
    load: async () => (await import("./logs/command.ts")).logsCommand,
  },
  {
    name: "ui",
    summary: "show members, workloads and pods on a web page",
    load: async () => equipped((await import("./ui/command.ts")).uiCommand),
  },
  {
    name: "credential",
    summary: "give readers of ClusterProfiles their own credential for the host",
    load: async () => (await import("./credential/command.ts")).credentialCommand,
  },
  {
    name: "completion",
    summary: "print a script that completes words in bash, zsh or fish",
    load: async () => (await import("./completion/command.ts")).completionCommand,
  },
  {
    name: "version",
    summary: "print the versions of the command line, the host and the members",
    load: async () => (await import("./version/command.ts")).versionCommand,
  },
  {
    name: "convert",
    summary: "turn objects of KubeFed, Karmada and Admiralty into ordinary manifests",
    load: async () => (await import("./convert/command.ts")).convertCommand,
  },
];
