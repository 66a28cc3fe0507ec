import type { DefaultTheme } from "vitepress";

const page = (text: string, link: string): DefaultTheme.SidebarItem => ({ text, link: `/docs/${link}` });

/** The parts of the documentation, by what a reader wants. */
export const SIDEBAR: DefaultTheme.SidebarItem[] = [
  {
    text: "Concepts",
    items: [
      page("How it works", "how-it-works"),
      page("When a member is lost", "lost-members"),
      page("Words", "glossary"),
      page("Placement", "placement"),
      page("Scheduling preferences", "scheduling-preferences"),
      page("Overrides", "overrides"),
      page("Whole Jobs", "whole-jobs"),
      page("Whole objects", "whole-objects"),
      page("Agents", "agents"),
      page("Access to members", "access"),
      page("ConfigMaps and Secrets", "dependencies"),
      page("Services", "services"),
      page("NetworkPolicies", "network-policies"),
      page("Claims", "storage"),
      page("The host's API", "home-api"),
      page("Logs and exec", "kubelet-api"),
    ],
  },
  {
    text: "Tasks",
    items: [
      page("All tasks", "tasks/README"),
      page("Run your Jobs in members", "tasks/author"),
      page("From nothing to a running pod", "tasks/kind"),
      page("A first pod", "tasks/first-pod"),
      page("Run a whole Job", "tasks/whole-job"),
      page("Give members a ConfigMap", "tasks/configmap"),
      page("Share members between teams", "tasks/share-members"),
      page("Let users into members", "tasks/access"),
      page("Join a member behind NAT", "tasks/agent"),
    ],
  },
  {
    text: "Reference",
    items: [
      page("Labels and annotations", "annotations"),
      page("Keys", "reference/keys"),
      page("The legation command", "cli"),
      page("Commands and flags", "reference/commands"),
      page("Cluster", "reference/cluster"),
      page("DelegatedType", "reference/delegated-type"),
      page("PlacementDefaults", "reference/placement-defaults"),
      page("Values of the chart", "reference/chart"),
      page("Metrics", "reference/metrics"),
      page("Reasons and events", "reference/reasons"),
      page("Conformance", "conformance"),
    ],
  },
  { text: "Troubleshooting", items: [page("By symptom", "troubleshooting"), page("By alert", "runbook")] },
  {
    text: "Operations",
    items: [
      page("Operations", "operations"),
      page("Install", "install"),
      page("Certificates and tokens", "credentials"),
      page("Backup", "backup"),
      page("Security", "security"),
      page("Sizing", "sizing"),
      page("Performance", "performance"),
      page("The page", "ui"),
      page("ClusterProfiles", "cluster-profiles"),
      page("Other components", "host-components"),
      page("Engines", "engines"),
    ],
  },
  { text: "Comparison", items: [page("With other projects", "comparison"), page("Migrating", "migrating")] },
  {
    text: "The project",
    items: [
      page("Roadmap", "roadmap"),
      page("Architecture", "architecture"),
      page("Development", "development"),
      page("Releasing", "releasing"),
      page("Decisions", "decisions/README"),
      { text: "Changes", link: "/CHANGELOG" },
      { text: "Contributing", link: "/CONTRIBUTING" },
      { text: "Security reports", link: "/SECURITY" },
    ],
  },
];
