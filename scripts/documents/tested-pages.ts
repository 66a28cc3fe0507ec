/** Pages that task-pages.test.ts runs, on clusters whose nodes are simulated. */
const FIRST_PAGES = [
  "README.md",
  "docs/tasks/configmap.md",
  "docs/tasks/first-pod.md",
  "docs/tasks/share-members.md",
  "docs/tasks/whole-job.md",
];

/** Pages that kind-pages.test.ts runs in tests of their own. */
const KIND_PAGES = ["docs/tasks/kind.md", "docs/tasks/agent.md"];

/** Pages that kind-pages.test.ts runs beside those, with Legation in pods and containers that run, in this order. */
export const OTHER_PAGES = [
  "docs/placement.md",
  "docs/migrating.md",
  "docs/network-policies.md",
  "docs/engines.md",
  "docs/host-components.md",
  "docs/storage.md",
  "docs/whole-jobs.md",
  "docs/whole-objects.md",
  "docs/cluster-profiles.md",
  "docs/ui.md",
  "docs/tasks/author.md",
  "docs/tasks/access.md",
  "docs/access.md",
  "docs/cli.md",
  "docs/troubleshooting.md",
  "docs/kubelet-api.md",
  "docs/home-api.md",
  "docs/credentials.md",
  "docs/backup.md",
  "docs/runbook.md",
  "docs/operations.md",
  "docs/lost-members.md",
  "docs/agents.md",
] as const;

/** Pages of which a test runs each block with the mark `run`. */
export const TESTED_PAGES: readonly string[] = [...FIRST_PAGES, ...KIND_PAGES, ...OTHER_PAGES];
