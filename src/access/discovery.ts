import { ACCESS_GROUP, ACCESS_VERSION } from "../api/access.ts";

const groupVersion = `${ACCESS_GROUP}/${ACCESS_VERSION}`;
const version = { groupVersion, version: ACCESS_VERSION };
const verbs = ["create", "delete", "get", "patch", "update"];
const group = { name: ACCESS_GROUP, versions: [version], preferredVersion: version };
const info = { title: "Legation access", version: ACCESS_VERSION };

/** Documents of discovery and OpenAPI by path. They name no member, so that no member can delay or break them. */
export const DISCOVERY: ReadonlyMap<string, object> = new Map<string, object>([
  ["/apis", { kind: "APIGroupList", apiVersion: "v1", groups: [group] }],
  [`/apis/${ACCESS_GROUP}`, { kind: "APIGroup", apiVersion: "v1", ...group }],
  [
    `/apis/${groupVersion}`,
    {
      kind: "APIResourceList",
      apiVersion: "v1",
      groupVersion,
      resources: [{ name: "clusters/proxy", singularName: "", namespaced: false, kind: "ClusterProxyOptions", verbs }],
    },
  ],
  ["/openapi/v2", { swagger: "2.0", info, paths: {} }],
  ["/openapi/v3", { paths: {} }],
]);
