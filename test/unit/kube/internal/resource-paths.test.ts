import { expect, test } from "vitest";
import { collectionPath, objectPath, withQuery, withSearch } from "../../../../src/kube/internal/resource-paths.ts";
import { jobs, nodes, pods } from "../../../../src/kube/resources.ts";

test.each([
  [collectionPath(pods), "/api/v1/pods"],
  [collectionPath(pods, "team"), "/api/v1/namespaces/team/pods"],
  [collectionPath(jobs, "team"), "/apis/batch/v1/namespaces/team/jobs"],
  [collectionPath(nodes, "team"), "/api/v1/nodes"],
  [objectPath(pods, { namespace: "team", name: "web-0" }, "binding"), "/api/v1/namespaces/team/pods/web-0/binding"],
  [objectPath(nodes, { name: "../../secrets" }), "/api/v1/nodes/..%2F..%2Fsecrets"],
  [objectPath(pods, { namespace: "a/b", name: "x?y" }), "/api/v1/namespaces/a%2Fb/pods/x%3Fy"],
])("%s is the path of its resource, in which no name leads elsewhere", (path, expected) => {
  expect(path).toBe(expected);
});

test("a query has its defined parameters, escaped, and no mark without any", () => {
  expect(withQuery("/p", { labelSelector: "a=b,c", limit: 5, watch: undefined })).toBe(
    "/p?labelSelector=a%3Db%2Cc&limit=5",
  );
  expect(withQuery("/p", {})).toBe("/p");
  expect(withSearch("/p", new URLSearchParams("command=a&command=b"))).toBe("/p?command=a&command=b");
  expect(withSearch("/p", new URLSearchParams())).toBe("/p");
});
