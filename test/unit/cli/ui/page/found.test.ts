import { describe, expect, test } from "vitest";
import type { PodRow, WholeRow } from "../../../../../src/cli/ui/model.ts";
import { findAll } from "../../../../../src/cli/ui/page/found.ts";
import { podWorkloads } from "../../../../../src/cli/ui/page/workload-rows.ts";
import { podRow } from "../../../../../src/cli/ui/rows.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { memberRow } from "./member-row.ts";

const pod = (name: string): PodRow => ({
  ...podRow(proxyPod()),
  uid: name,
  namespace: "shop",
  name,
  member: "west",
  node: "west-1",
  workload: "Deployment/web",
});
const pods = [pod("web-b"), pod("web-a")];
const member = memberRow("west");
const services = [{ namespace: "shop", name: "web-svc" }];
const settings: WholeRow = {
  uid: "1",
  type: "configmaps",
  kind: "ConfigMap",
  namespace: "shop",
  name: "web-settings",
  isEnding: false,
  members: [],
};
const find = (search: string): string[] =>
  findAll({ members: [member], pods, workloads: podWorkloads(pods), services, objects: [settings] }, search).map(
    ({ kind, name, link }) => `${kind} ${name} ${link}`,
  );

describe("the search over everything", () => {
  test("finds all kinds by a part of the name, each with its view", () => {
    expect(find("WEB")).toEqual([
      "workload Deployment/web #/workloads/Deployment/shop/web",
      "Service web-svc #/services/shop/web-svc",
      "whole object ConfigMap/web-settings #/objects/configmaps/shop/web-settings",
      "pod web-a #/pods/shop/web-a",
      "pod web-b #/pods/shop/web-b",
    ]);
  });

  test.each([
    [
      "members and nodes, the exact name first",
      "west",
      ["member west #/members/west", "node west-1 #/nodes/west/west-1"],
    ],
    ["only what has every word", "shop web-a", ["pod web-a #/pods/shop/web-a"]],
    ["one kind by its word", "namespace shop", ["namespace shop #/namespaces/shop"]],
    ["nothing without words", " ", []],
    ["nothing where nothing is like it", "missing", []],
  ])("finds %s", (_, search, found) => {
    expect(find(search)).toEqual(found);
  });
});
