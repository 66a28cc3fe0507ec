import { expect, test } from "vitest";
import {
  MEMBERS_COMMANDS,
  memberCommands,
  objectCommands,
  podsCommands,
  workloadCommands,
} from "../../../../../src/cli/ui/page/commands.ts";

test.each([
  [
    "a pod",
    objectCommands("pod", "shop", "web-0"),
    "kubectl -n shop get pod web-0 -o yaml",
    "legation status pod/web-0 -n shop",
  ],
  [
    "a workload",
    workloadCommands("Deployment", "shop", "web"),
    "kubectl -n shop get deployment web -o yaml",
    "legation status deployment/web -n shop",
  ],
  [
    "a whole object",
    objectCommands("configmaps", "shop", "settings"),
    "kubectl -n shop get configmaps settings -o yaml",
    "legation status configmaps/settings -n shop",
  ],
  [
    "a whole object without a namespace",
    objectCommands("clusterroles.rbac.authorization.k8s.io", undefined, "r"),
    "kubectl get clusterroles.rbac.authorization.k8s.io r -o yaml",
    "legation status clusterroles.rbac.authorization.k8s.io/r",
  ],
  [
    "a workload that the command line does not show",
    workloadCommands("Workflow", "shop", "nightly"),
    "kubectl -n shop get workflow nightly -o yaml",
    "legation status -n shop",
  ],
  ["a member", memberCommands("west"), "kubectl get clusters.legation.dev west -o yaml", "legation status member/west"],
  ["all members", MEMBERS_COMMANDS, "kubectl get clusters.legation.dev", "legation status"],
  ["all pods", podsCommands(undefined), "kubectl get pods -l legation.dev/proxy -A -o wide", "legation status -A"],
  [
    "the pods of a namespace",
    podsCommands("shop"),
    "kubectl get pods -l legation.dev/proxy -n shop -o wide",
    "legation status -n shop",
  ],
])("%s has its commands", (_, commands, kubectl, legation) => {
  expect(commands).toEqual({ kubectl, legation });
});
