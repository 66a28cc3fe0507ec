import { type CommandEntry, equipped } from "../subcommand.ts";

/** With kubectl's short names. */
const WORKLOADS = [
  ["Deployment", "deploy"],
  ["ReplicaSet", "rs"],
  ["StatefulSet", "sts"],
  ["ReplicationController", "rc"],
  ["Job"],
  ["CronJob", "cj"],
] as const;

/** All commands. What one needs is loaded when it is called: `legation --help` must not wait for an HTTP server. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "install",
    summary: "install or upgrade Legation on the host cluster",
    load: async () => equipped((await import("./install.ts")).installCommand),
  },
  {
    name: "uninstall",
    summary: "take Legation off the host cluster",
    load: async () => equipped((await import("./uninstall.ts")).uninstallCommand),
  },
  {
    name: "webhook",
    summary: "run the admission webhook",
    load: async () => equipped((await import("./webhook.ts")).webhookCommand),
  },
  {
    name: "controller",
    summary: "run the controller",
    load: async () => equipped((await import("./controller.ts")).controllerCommand),
  },
  {
    name: "join",
    summary: "join a member cluster to the host",
    load: async () => equipped((await import("./join.ts")).joinCommand),
  },
  {
    name: "unjoin",
    summary: "take a member cluster out",
    load: async () => equipped((await import("./unjoin.ts")).unjoinCommand),
  },
  {
    name: "plan",
    summary: "show where the pods of a manifest would go, and why not elsewhere",
    load: async () => equipped((await import("./plan.ts")).planCommand),
  },
  {
    name: "status",
    summary: "show the member clusters, one pod's way, or a workload's division",
    load: async () => equipped((await import("./status.ts")).statusCommand),
    below: [
      {
        name: "pod",
        aliases: ["po", "pods"],
        summary: "show one pod's way: created, placed, bound, running, finished, or what it waits for",
        load: async () => equipped((await import("./status-pod.ts")).statusPodCommand),
      },
      ...WORKLOADS.map(([kind, ...short]) => ({
        name: kind.toLowerCase(),
        aliases: [...short, `${kind.toLowerCase()}s`],
        summary: `show how one ${kind} is divided over members, and why pods of it wait`,
        load: async () => equipped((await import("./status-workload.ts")).statusWorkloadCommand(kind)),
      })),
    ],
  },
];
